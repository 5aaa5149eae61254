/** What of a session is not approved yet: approve it all, or go back to what was. */

import { useState } from "preact/hooks";
import { api, type RestoreResult, type RoundStatus } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Plan } from "../../parts/plan";
import { Skeleton, Trouble } from "../../parts/small";
import { useResource, type Resource } from "../../resource";
import { complain, say } from "../../state";
import { takeBack } from "../../takeback";
import { count } from "../../words";

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
    void takeBack(project, [operation]).then(() => round.reload(), complain);
  const approve = async () => {
    try {
      const { operation } = await api.approve(project, session);
      say("Approved: what is there now is what later work is compared with.", {
        action: { label: "Undo", run: () => undo(operation) },
      });
      await round.reload();
    } catch (problem) {
      complain(problem);
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
              say(`Nothing was reset: ${skipped[0]?.reason ?? "nothing had to change"}.`);
            else
              say("Back at what was approved.", {
                action: { label: "Undo", run: () => undo(operation) },
              });
            void round.reload();
          }}
        />
      )}
    </>
  );
}

function ResetDialog(given: {
  project: string;
  session: string;
  close: () => void;
  done: (files: RestoreResult) => void;
}) {
  const plan = useResource(
    () => api.reset(given.project, given.session, { preview: true }),
    [given.session],
  );
  const run = () =>
    void api
      .reset(given.project, given.session, {})
      .then(({ files }) => given.done(files), complain);
  return (
    <Dialog
      title="Reset to what was approved"
      close={given.close}
      actions={
        <>
          <button type="button" class="button" onClick={given.close}>
            Cancel
          </button>
          <button type="button" class="button danger" disabled={!plan.data} onClick={run}>
            Reset the files
          </button>
        </>
      }
    >
      <p>
        Everything that this session did since, commands included, is undone. One undo brings it
        back.
      </p>
      {plan.problem ? (
        <Trouble problem={plan.problem} />
      ) : plan.data ? (
        <Plan plan={plan.data.files} />
      ) : (
        <Skeleton lines={3} height={28} />
      )}
    </Dialog>
  );
}
