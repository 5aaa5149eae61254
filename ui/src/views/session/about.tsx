/** The session's rounds, and dialogs to set approvals, rename and delete it. */

import { useState } from "preact/hooks";
import { api, type Session } from "../../api";
import { count, roundName } from "../../format";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icons";
import { TimeAgo } from "../../parts/small";
import { useResource } from "../../resource";
import { go, urlFor } from "../../router";
import { showError, showToast } from "../../state";
import { Approvals } from "./approvals";

const STATES: Record<string, string> = {
  active: "in progress",
  merged: "approved",
  abandoned: "reset",
};

const MAX_ROUNDS = 6;

export function About({ project, session }: { project: string; session: Session }) {
  const [asked, setAsked] = useState<"approvals" | "name" | "delete" | null>(null);
  const close = () => setAsked(null);
  const rounds = useResource(
    () => api.rounds(project, session.session),
    [project, session.session],
    (event) => event.project === project && event.kind.startsWith("operation"),
  );
  return (
    <section class="about">
      <h2>Rounds</h2>
      <ol class="rounds">
        {(rounds.data?.rounds ?? []).slice(-MAX_ROUNDS).map((round) => (
          <li key={round.name}>
            <span class={`state state-${round.status === "active" ? "running" : "stopped"}`} />
            <span>
              {roundName(round.name)}: {STATES[round.status] ?? round.status}
            </span>
            <span class="faint">
              <TimeAgo at={round.closed_at ?? round.created_at} />
            </span>
          </li>
        ))}
      </ol>
      <div class="session-acts">
        <button type="button" class="small" onClick={() => setAsked("approvals")}>
          Approvals…
        </button>
        <button type="button" class="small" onClick={() => setAsked("name")}>
          Rename…
        </button>
        <button type="button" class="small" onClick={() => setAsked("delete")}>
          Delete…
        </button>
      </div>
      {asked === "approvals" && <Approvals project={project} session={session} close={close} />}
      {asked === "name" && <Rename project={project} session={session} close={close} />}
      {asked === "delete" && <Delete project={project} session={session} close={close} />}
    </section>
  );
}

function Rename({
  project,
  session,
  close,
}: {
  project: string;
  session: Session;
  close: () => void;
}) {
  const [title, setTitle] = useState(session.title);
  const save = () =>
    void api.changeSession(project, session.session, { title }).then(close, showError);
  return (
    <Dialog
      title="Rename the session"
      close={close}
      actions={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="button" class="button primary" disabled={!title.trim()} onClick={save}>
            Save
          </button>
        </>
      }
    >
      <label class="field field-wide">
        <Icon name="edit" size={14} />
        <span class="unseen">Title</span>
        <input
          value={title}
          onInput={(event) => setTitle(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && save()}
        />
      </label>
    </Dialog>
  );
}

function Delete({
  project,
  session,
  close,
}: {
  project: string;
  session: Session;
  close: () => void;
}) {
  const pending = session.pending?.files ?? 0;
  const run = () =>
    void api.deleteSession(project, session.session).then(() => {
      showToast("The session is deleted.");
      go(urlFor("home"));
    }, showError);
  return (
    <Dialog
      title="Delete the session?"
      close={close}
      actions={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="button" class="button danger" onClick={run}>
            Delete the session
          </button>
        </>
      }
    >
      <p>
        Its conversation and its checkpoints are deleted. This cannot be undone. No file of the
        project is touched
        {pending > 0 ? `; ${count(pending, "file")} stay as they are` : ""}.
      </p>
    </Dialog>
  );
}
