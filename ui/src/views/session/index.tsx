/** A session: its conversation, with the tree of its branches beside it. */

import { useState } from "preact/hooks";
import { api, type Entry, type Navigation } from "../../api";
import { roundName, statusLabel } from "../../format";
import { Icon } from "../../parts/icons";
import { Badge, EmptyState } from "../../parts/small";
import { useResource } from "../../resource";
import { go, route, urlFor } from "../../router";
import { showError, showToast } from "../../state";
import { Conversation } from "./conversation";
import { useConversation } from "./conversation-pages";
import { GoTo } from "./goto";
import { useGraph } from "./graph";
import { LabelDialog } from "./label";
import { RoundBar } from "./round";
import { Side } from "./side";

export default function SessionView() {
  const { project, query } = route.value;
  const session = query.get("id");
  if (!project || !session)
    return (
      <EmptyState icon="session" title="No session selected">
        <a class="button" href="/">
          Go to the sessions
        </a>
      </EmptyState>
    );
  return <SessionOf key={`${project} ${session}`} project={project} session={session} />;
}

function SessionOf({ project, session }: { project: string; session: string }) {
  const { query } = route.value;
  const seq = query.get("seq");
  const target = query.get("entry");
  const mine = (event: { project: string | null; session?: string }) =>
    event.project === project && (!event.session || event.session === session);

  const about = useResource(
    () => api.session(project, session),
    [project, session],
    (event) => mine(event) && event.kind !== "files",
  );
  const pending = useResource(
    () => api.pending(project, { session }),
    [project, session],
    (event) => event.project === project && event.kind !== "entry",
  );
  const turns = useResource(
    () => api.turns(project, session),
    [project, session],
    (event) => mine(event) && event.kind.startsWith("operation"),
  );
  const round = useResource(
    () => api.round(project, session),
    [project, session],
    (event) =>
      event.project === project && (event.kind.startsWith("operation") || event.kind === "files"),
  );
  const graph = useGraph(project, session);
  const path = useConversation(project, session, { entry: target, seq: seq ? Number(seq) : null });

  const [going, setGoing] = useState<Entry | null>(null);
  const [labelling, setLabelling] = useState<Entry | null>(null);
  const [draft, setDraft] = useState<string | null>(null);
  const [drawer, setDrawer] = useState(false);

  function gone(navigation: Navigation): void {
    setGoing(null);
    setDraft(navigation.text);
    if (target) go(urlFor("session", project, { id: session }));
    else void path.reload();
    void graph.reload();
  }

  async function fork(entry: Entry): Promise<void> {
    const made = await api.fork(project, session, { entry: entry.entry });
    showToast("Forked: this is the new session.");
    go(urlFor("session", project, { id: made.session }));
  }

  async function label(entry: Entry, wanted: string | null): Promise<void> {
    setLabelling(null);
    path.replace(await api.label(project, session, entry.entry, wanted));
    await graph.reload();
  }

  const data = about.data;
  const stats = pending.data && { ...pending.data, files: pending.data.files.length };
  return (
    <div class="view session">
      <header class="bar">
        <a class="bare bar-home" href="/" aria-label="All sessions" title="All sessions">
          <Icon name="home" />
        </a>
        <div class="session-head">
          <h1>{data ? data.title || "Untitled session" : "\u00a0"}</h1>
          <span class="session-facts">
            {data?.agent && <span class="agent">{data.agent}</span>}
            {data?.model && <span>{data.model}</span>}
            {data && <span>{statusLabel(data.status)}</span>}
            {round.data && <span>{roundName(round.data.round)}</span>}
            {round.data?.has_unapproved && <span class="tag">not approved</span>}
          </span>
        </div>
        <span class="bar-space" />
        <button
          type="button"
          class="button drawer-button"
          aria-expanded={drawer}
          onClick={() => setDrawer(true)}
        >
          <Icon name="branch" size={14} /> <span class="button-word">Branches</span>
        </button>
        {stats && stats.files > 0 && (
          <a class="button" href={urlFor("review", project, { session })}>
            Review <Badge of={stats} />
          </a>
        )}
        <RoundBar project={project} session={session} round={round} />
      </header>
      <div class="session-panes">
        <div class="session-pane">
          <Conversation
            project={project}
            session={session}
            path={path}
            turns={turns.data?.turns ?? []}
            target={target}
            act={{
              goTo: setGoing,
              label: setLabelling,
              fork: (entry) => void fork(entry).catch(showError),
            }}
            draft={draft}
            dropDraft={() => setDraft(null)}
            atRoot={Boolean(graph.drawn?.nodes.length)}
          />
        </div>
        <Side
          project={project}
          session={data}
          graph={graph}
          selected={target}
          drawer={drawer}
          close={() => setDrawer(false)}
        />
      </div>
      {going && (
        <GoTo
          project={project}
          session={session}
          entry={going}
          close={() => setGoing(null)}
          gone={gone}
        />
      )}
      {labelling && (
        <LabelDialog
          entry={labelling}
          close={() => setLabelling(null)}
          save={(wanted) => void label(labelling, wanted).catch(showError)}
        />
      )}
    </div>
  );
}
