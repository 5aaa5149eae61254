/** The restore dialog: shows the plan first, then restores all or selected files. */

import { useState } from "preact/hooks";
import { api, type Checkpoint } from "../../api";
import { count, formatDateTime } from "../../format";
import { Dialog } from "../../parts/dialog";
import { hasChanges, Plan } from "../../parts/plan";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { showError, showToast } from "../../state";
import { undoOperations } from "../../undo";

export function Restore(props: {
  project: string;
  checkpoint: Checkpoint;
  paths: string[];
  close: () => void;
}) {
  const { project, checkpoint, paths } = props;
  const [keep, setKeep] = useState(false);
  const [force, setForce] = useState(false);
  const [busy, setBusy] = useState(false);
  const body = { paths, keep_dirty: keep, force };
  const plan = useResource(
    () => api.restore(project, checkpoint.checkpoint, { ...body, preview: true }),
    [checkpoint.checkpoint, paths, keep, force],
  );
  async function run(): Promise<void> {
    setBusy(true);
    try {
      const done = await api.restore(project, checkpoint.checkpoint, body);
      props.close();
      const number = done.restored.length + done.deleted.length;
      const { operation } = done;
      if (operation === null)
        return showToast("Nothing changed: the files already match this checkpoint.");
      showToast(`Restored: ${count(number, "file")} changed.`, {
        action: {
          label: "Undo",
          run: () =>
            void undoOperations(project, [operation]).then(
              () => showToast("The restore is undone."),
              showError,
            ),
        },
      });
    } catch (problem) {
      showError(problem);
      setBusy(false);
    }
  }
  const someDirty = keep || Boolean(plan.data?.dirty.length);
  const someSkipped = force || Boolean(plan.data?.skipped.length);
  return (
    <Dialog
      title={paths.length ? `Restore ${count(paths.length, "file")}` : "Restore everything"}
      close={props.close}
      actions={
        <>
          <button type="button" class="button" onClick={props.close}>
            Cancel
          </button>
          <button
            type="button"
            class="button primary"
            disabled={busy || !plan.data || !hasChanges(plan.data)}
            onClick={() => void run()}
          >
            Restore
          </button>
        </>
      }
    >
      <p>As of {formatDateTime(checkpoint.created_at)}. A safety checkpoint is taken first.</p>
      {plan.problem ? (
        <ErrorBox problem={plan.problem} />
      ) : plan.data ? (
        <Plan plan={plan.data} />
      ) : (
        <Skeleton lines={4} height={28} />
      )}
      {someDirty && (
        <label class="option">
          <input
            type="checkbox"
            checked={keep}
            onChange={() => (setKeep(!keep), setForce(false))}
          />
          <span>Keep files that are not in any checkpoint yet</span>
        </label>
      )}
      {someSkipped && !keep && (
        <label class="option">
          <input type="checkbox" checked={force} onChange={() => setForce(!force)} />
          <span>Also overwrite files that I changed myself</span>
        </label>
      )}
    </Dialog>
  );
}
