/** Deleting all sessions of a project, asked twice: what would go, then whether it really may. */

import { useEffect, useState } from "preact/hooks";
import { api, type Cleared } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Skeleton } from "../../parts/small";
import { showError, showToast } from "../../state";
import { count } from "../../format";

export function ClearSessions({ project, close }: { project: string; close: () => void }) {
  const [listed, setListed] = useState<Cleared | null>(null);
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const failed = (problem: unknown) => {
    showError(problem);
    close();
  };
  useEffect(() => void api.clearSessions(project, {}).then(setListed, failed), [project]);
  const many = listed ? count(listed.sessions, "session") : "";
  const clear = async () => {
    setBusy(true);
    try {
      // The word stands for the sessions that were counted: with others in between it is refused.
      const done = await api.clearSessions(project, { confirm: listed!.confirm });
      showToast(`Deleted ${count(done.sessions, "session")}. “Free space” gives back the room.`);
      close();
    } catch (problem) {
      failed(problem);
    }
  };
  return (
    <Dialog
      title={sure ? `Really delete ${many}?` : "Delete all sessions?"}
      close={close}
      actions={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          {sure ? (
            <button type="button" class="button danger" disabled={busy} onClick={() => void clear()}>
              Delete for good
            </button>
          ) : (
            <button
              type="button"
              class="button danger"
              disabled={!listed?.sessions}
              onClick={() => setSure(true)}
            >
              {listed?.sessions ? `Delete ${many}…` : "Delete…"}
            </button>
          )}
        </>
      }
    >
      {!listed ? (
        <Skeleton lines={2} height={20} flush />
      ) : !listed.sessions ? (
        <p>There is no session in this project.</p>
      ) : sure ? (
        <p>
          This cannot be undone: nothing brings back what was said in them, or their checkpoints.
        </p>
      ) : (
        <p>
          <strong>{many}</strong> with {count(listed.entries, "record")} would go, and their
          checkpoints with them. No file of the project is touched, and the next undo still works.
        </p>
      )}
    </Dialog>
  );
}
