/** Restoring a checkpoint, or some files of it: what it would do is shown first. */

import { useState } from "preact/hooks";
import { api, type Checkpoint } from "../../api";
import { Dialog } from "../../parts/dialog";
import { changes, Plan } from "../../parts/plan";
import { Skeleton, Trouble } from "../../parts/small";
import { useResource } from "../../resource";
import { complain, say } from "../../state";
import { takeBack } from "../../takeback";
import { count, when } from "../../words";

export function Restore(given: {
  project: string;
  checkpoint: Checkpoint;
  paths: string[];
  close: () => void;
}) {
  const { project, checkpoint, paths } = given;
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
      given.close();
      const number = done.restored.length + done.deleted.length;
      const { operation } = done;
      if (operation === null) return say("All was as it should be; nothing changed.");
      say(`Restored: ${count(number, "file")} changed.`, {
        action: {
          label: "Undo",
          run: () =>
            void takeBack(project, [operation]).then(
              () => say("All is as it was before."),
              complain,
            ),
        },
      });
    } catch (problem) {
      complain(problem);
      setBusy(false);
    }
  }
  const someDirty = keep || Boolean(plan.data?.dirty.length);
  const someSkipped = force || Boolean(plan.data?.skipped.length);
  return (
    <Dialog
      title={paths.length ? `Restore ${count(paths.length, "file")}` : "Restore everything"}
      close={given.close}
      actions={
        <>
          <button type="button" class="button" onClick={given.close}>
            Cancel
          </button>
          <button
            type="button"
            class="button primary"
            disabled={busy || !plan.data || !changes(plan.data)}
            onClick={() => void run()}
          >
            Restore
          </button>
        </>
      }
    >
      <p>As of {when(checkpoint.created_at)}. A safety checkpoint is taken first.</p>
      {plan.problem ? (
        <Trouble problem={plan.problem} />
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
          <span>Leave files alone that are in no checkpoint yet</span>
        </label>
      )}
      {someSkipped && !keep && (
        <label class="option">
          <input type="checkbox" checked={force} onChange={() => setForce(!force)} />
          <span>Overwrite what I changed, too</span>
        </label>
      )}
    </Dialog>
  );
}
