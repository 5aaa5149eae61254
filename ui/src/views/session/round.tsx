/** Buttons to approve or reset the session's unapproved work. */

import { useState } from "preact/hooks";
import { api, type RestoreResult, type RoundStatus } from "../../api";
import { count } from "../../format";
import { Dialog } from "../../parts/dialog";
import { Plan } from "../../parts/plan";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource, type Resource } from "../../resource";
import { showError, showToast } from "../../state";
import { undoOperations } from "../../undo";

export function RoundBar({
  project,
  session,
  round,
}: {
  project: string;
  session: string;
  round: Resource<RoundStatus>;
}) {
  const [resetting, setResetting] = useState(false);
  const { data } = round;
  if (!data?.has_unapproved) return null;
  const undo = (operation: number) =>
    void undoOperations(project, [operation]).then(() => round.reload(), showError);
  const approve = async () => {
    try {
      const { operation } = await api.approve(project, session);
      showToast("Approved. Later changes are compared with the files as they are now.", {
        action: { label: "Undo", run: () => undo(operation) },
      });
      await round.reload();
    } catch (problem) {
      showError(problem);
    }
  };
  return (
    <>
      <button type="button" class="button" onClick={() => setResetting(true)}>
        Reset…
      </button>
      <button
        type="button"
        class="button primary"
        title={`${count(data.changed_files.length, "file")} not approved`}
        onClick={() => void approve()}
      >
        Approve
      </button>
      {resetting && (
        <ResetDialog
          project={project}
          session={session}
          close={() => setResetting(false)}
          done={({ operation, skipped }) => {
            setResetting(false);
            if (operation === null)
              showToast(`Nothing was reset: ${skipped[0]?.reason ?? "no file had to change"}.`);
            else
              showToast("Reset: the files are back at the last approved state.", {
                action: { label: "Undo", run: () => undo(operation) },
              });
            void round.reload();
          }}
        />
      )}
    </>
  );
}

function ResetDialog(props: {
  project: string;
  session: string;
  close: () => void;
  done: (files: RestoreResult) => void;
}) {
  const plan = useResource(
    () => api.reset(props.project, props.session, { preview: true }),
    [props.session],
  );
  const run = () =>
    void api
      .reset(props.project, props.session, {})
      .then(({ files }) => props.done(files), showError);
  return (
    <Dialog
      title="Reset to the last approved state"
      close={props.close}
      actions={
        <>
          <button type="button" class="button" onClick={props.close}>
            Cancel
          </button>
          <button type="button" class="button danger" disabled={!plan.data} onClick={run}>
            Reset the files
          </button>
        </>
      }
    >
      <p>
        This undoes everything that the session changed since the last approval, including changes
        by commands. You can undo the reset.
      </p>
      {plan.problem ? (
        <ErrorBox problem={plan.problem} />
      ) : plan.data ? (
        <Plan plan={plan.data.files} />
      ) : (
        <Skeleton lines={3} height={28} />
      )}
    </Dialog>
  );
}
