/** The dialog that deletes all sessions of a project, after two confirmations. */

import { useEffect, useState } from "preact/hooks";
import { api, type Cleared } from "../../api";
import { count } from "../../format";
import { Dialog } from "../../parts/dialog";
import { Skeleton } from "../../parts/small";
import { showError, showToast } from "../../state";

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
      // `confirm` stands for the listed sessions; the server refuses if there are others by now.
      const done = await api.clearSessions(project, { confirm: listed!.confirm });
      showToast(
        `Deleted ${count(done.sessions, "session")}. Use “Free space” to reclaim the disk space.`,
      );
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
            <button
              type="button"
              class="button danger"
              disabled={busy}
              onClick={() => void clear()}
            >
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
        <p>This project has no sessions.</p>
      ) : sure ? (
        <p>This cannot be undone. The conversations and their checkpoints are lost.</p>
      ) : (
        <p>
          <strong>{many}</strong> with {count(listed.entries, "record")} would be deleted, and their
          checkpoints with them. No file of the project is touched, and the next undo still works.
        </p>
      )}
    </Dialog>
  );
}
