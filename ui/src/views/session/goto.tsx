/** The “Return here” dialog: shows the plan first, then moves the session. */

import { useState } from "preact/hooks";
import { api, type Entry, type Navigation } from "../../api";
import { firstLine } from "../../format";
import { Dialog } from "../../parts/dialog";
import { NoChange, Plan } from "../../parts/plan";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { showError, showToast } from "../../state";
import { undoOperations } from "../../undo";

export function GoTo(props: {
  project: string;
  session: string;
  entry: Entry;
  close: () => void;
  gone: (navigation: Navigation) => void;
}) {
  const { project, session, entry } = props;
  const [files, setFiles] = useState(true);
  const [force, setForce] = useState(false);
  const [busy, setBusy] = useState(false);
  const body = { entry: entry.entry, skip_files: !files, force };
  const plan = useResource(
    () => api.goto(project, session, { ...body, preview: true }),
    [entry.entry, files, force],
  );
  const before = entry.type === "user_input";

  async function run(): Promise<void> {
    setBusy(true);
    try {
      const done = await api.goto(project, session, body);
      const { operation } = done;
      props.gone(done);
      if (operation === null)
        return showToast("Nothing changed: the session is already at this point.");
      showToast(
        files
          ? "The conversation and the files are back at this point."
          : "The conversation is back at this point. No file was changed.",
        {
          action: {
            label: "Undo",
            run: () =>
              void undoOperations(project, [operation]).then(
                () => showToast("The return is undone."),
                showError,
              ),
          },
        },
      );
    } catch (problem) {
      showError(problem);
      setBusy(false);
    }
  }

  return (
    <Dialog
      title={before ? "Return to before this message" : "Return to after this turn"}
      close={props.close}
      actions={
        <>
          <button type="button" class="button" onClick={props.close}>
            Cancel
          </button>
          <button
            type="button"
            class="button primary"
            disabled={busy || !plan.data}
            onClick={() => void run()}
          >
            {files ? "Return with files" : "Return without files"}
          </button>
        </>
      }
    >
      {before && <blockquote class="quote">{firstLine(entry.content, 200)}</blockquote>}
      <fieldset class="choice">
        <legend class="unseen">What goes back</legend>
        <label class="option">
          <input type="radio" name="what" checked={files} onChange={() => setFiles(true)} />
          <span>
            Conversation and files
            <small>Files get the content they had then. Your own later changes stay.</small>
          </span>
        </label>
        <label class="option">
          <input type="radio" name="what" checked={!files} onChange={() => setFiles(false)} />
          <span>
            Only the conversation
            <small>No file is touched.</small>
          </span>
        </label>
      </fieldset>
      {plan.problem ? (
        <ErrorBox problem={plan.problem} />
      ) : !plan.data ? (
        <Skeleton lines={3} height={28} />
      ) : (
        files && (plan.data.files ? <Plan plan={plan.data.files} /> : <NoChange />)
      )}
      {files && (plan.data?.files?.skipped.length || force) ? (
        <label class="option">
          <input type="checkbox" checked={force} onChange={() => setForce(!force)} />
          <span>
            Also overwrite files that I changed myself
            <small>A safety checkpoint keeps them; undo brings them back.</small>
          </span>
        </label>
      ) : null}
    </Dialog>
  );
}
