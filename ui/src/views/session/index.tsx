/** A session: its conversation as a timeline, its branches as a tree beside it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Entry, type Navigation } from "../../api";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { Dialog } from "../../parts/dialog";
import { Badge, Empty, Skeleton, Trouble } from "../../parts/small";
import { useResource } from "../../resource";
import { go, place, to } from "../../router";
import { complain, say } from "../../state";
import { status } from "../../words";
import { About } from "./about";
import { EntryView, type Act } from "./entries";
import { GoTo } from "./goto";
import { drawGraph, loadGraph } from "./graph";
import { usePath } from "./path";
import { RoundBar } from "./round";
import { Tree } from "./tree";

export default function SessionView() {
  const { project, query } = place.value;
  const session = query.get("id");
  if (!project || !session)
    return (
      <Empty icon="session" title="Which session?">
        <a class="button" href="/">
          To the sessions
        </a>
      </Empty>
    );
  return <One key={`${project} ${session}`} project={project} session={session} />;
}

function One({ project, session }: { project: string; session: string }) {
  const { query } = place.value;
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
  const graph = useResource(
    () => loadGraph(project, session),
    [project, session],
    (event) => mine(event) && event.kind !== "files",
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
  const path = usePath(project, session, { entry: target, seq: seq ? Number(seq) : null });

  const [going, setGoing] = useState<Entry | null>(null);
  const [labelling, setLabelling] = useState<Entry | null>(null);
  const [draft, setDraft] = useState<string | null>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const drawn = useMemo(() => graph.data && drawGraph(graph.data), [graph.data]);

  useLayoutEffect(() => {
    const box = scroll.current;
    if (!box || !path.shown) return;
    if (target) document.getElementById(`e-${target}`)?.scrollIntoView({ block: "center" });
    else if (stick.current) box.scrollTop = box.scrollHeight;
  }, [target, path.shown?.entries.at(-1)?.entry, path.shown === null]);

  const entries = path.shown?.entries ?? [];
  const results = useMemo(() => matched(entries), [entries]);
  const byCheckpoint = useMemo(
    () =>
      new Map(
        stepsOf(entries).flatMap(([checkpoint, at]) => {
          const turn = turns.data?.turns.at(at);
          return turn ? [[checkpoint, turn] as const] : [];
        }),
      ),
    [entries, turns.data],
  );
  const act: Act = {
    goTo: setGoing,
    label: setLabelling,
    fork: (entry) =>
      void api.fork(project, session, { entry: entry.entry }).then((made) => {
        say("A new session begins there.");
        go(to("session", project, { id: made.session }));
      }, complain),
    project,
    target,
    turns: byCheckpoint,
    results,
  };

  function gone(navigation: Navigation): void {
    setGoing(null);
    setDraft(navigation.text);
    stick.current = true;
    if (target) go(to("session", project, { id: session }));
    else void path.reload();
    void graph.reload();
  }

  const move = (by: number) => {
    const all = [...document.querySelectorAll<HTMLElement>(".entry-user_input")];
    const top = scroll.current!.getBoundingClientRect().top + 24;
    const now = all.findLastIndex((each) => each.getBoundingClientRect().top <= top + 4);
    const next = all[Math.min(Math.max(now + by, 0), all.length - 1)];
    next?.scrollIntoView({ block: "start" });
  };
  useKeys("Session", [
    { key: "j", does: "next message", run: () => move(1) },
    { key: "k", does: "previous message", run: () => move(-1) },
    { key: "r", does: "review what is pending", run: () => go(to("review", project, { session })) },
  ]);

  async function earlier(): Promise<void> {
    const box = scroll.current!;
    const before = box.scrollHeight - box.scrollTop;
    await path.earlier().catch(complain);
    requestAnimationFrame(() => (box.scrollTop = box.scrollHeight - before));
  }

  const data = about.data;
  const stats = pending.data && { ...pending.data, files: pending.data.files.length };
  return (
    <div class="view session">
      <header class="bar">
        <a class="bare" href="/" aria-label="All sessions" title="All sessions">
          <Icon name="home" />
        </a>
        <div class="session-head">
          <h1>{data ? data.title || "Untitled session" : " "}</h1>
          <span class="session-facts">
            {data?.agent && <span class="agent">{data.agent}</span>}
            {data?.model && <span>{data.model}</span>}
            {data && <span>{status(data.status)}</span>}
            {round.data && <span>{roundName(round.data.round)}</span>}
            {round.data?.has_unapproved && <span class="tag">not approved</span>}
          </span>
        </div>
        <span class="bar-space" />
        {stats && stats.files > 0 && (
          <a class="button" href={to("review", project, { session })}>
            Review <Badge of={stats} />
          </a>
        )}
        <RoundBar project={project} session={session} round={round} />
      </header>
      <div class="session-panes">
        <div
          class="page-scroll timeline"
          ref={scroll}
          tabIndex={0}
          role="group"
          aria-label="Conversation"
          onScroll={(event) => {
            const box = event.currentTarget;
            stick.current = box.scrollTop + box.clientHeight > box.scrollHeight - 60;
            if (box.scrollTop < 80 && path.shown?.earlier) void earlier();
          }}
        >
          {path.problem && <Trouble problem={path.problem} retry={() => void path.reload()} />}
          {!path.shown && !path.problem ? (
            <Skeleton lines={7} height={72} />
          ) : !entries.length && path.shown ? (
            <Empty icon="session" title="Nothing was said yet">
              <p>What the agent says and does appears here as it happens.</p>
            </Empty>
          ) : (
            <ol class="entries">
              {path.shown?.earlier && (
                <li>
                  <button type="button" class="small" onClick={() => void earlier()}>
                    Earlier
                  </button>
                </li>
              )}
              {entries.map((entry) => (
                <EntryView key={entry.entry} entry={entry} act={act} />
              ))}
              {draft && <Draft text={draft} close={() => setDraft(null)} />}
            </ol>
          )}
          {path.shown?.elsewhere && (
            <div class="elsewhere" role="status">
              <Icon name="branch" />
              <span>This branch was left. The session stands elsewhere.</span>
              <button type="button" class="small strong" onClick={() => setGoing(entries.at(-1)!)}>
                Go to its end…
              </button>
              <a class="small" href={to("session", project, { id: session })}>
                Back to where it stands
              </a>
            </div>
          )}
          {path.shown?.later && !path.shown.elsewhere && (
            <div class="elsewhere">
              <span>The session goes on.</span>
              <a class="small strong" href={to("session", project, { id: session })}>
                To its end
              </a>
            </div>
          )}
        </div>
        <aside class="session-side" aria-label="Branches">
          <h2>Branches</h2>
          {graph.problem ? (
            <Trouble problem={graph.problem} />
          ) : drawn ? (
            <Tree graph={drawn} project={project} session={session} selected={target} />
          ) : (
            <Skeleton lines={4} height={40} />
          )}
          {data && <About project={project} session={data} />}
        </aside>
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
          save={(label) => {
            setLabelling(null);
            void api
              .label(project, session, labelling.entry, label)
              .then(() => path.reload(), complain);
          }}
        />
      )}
    </div>
  );
}

function Draft({ text, close }: { text: string; close: () => void }) {
  return (
    <li class="entry draft">
      <p class="faint">You are back before this message. Say it again, or something better:</p>
      <pre class="code">{text}</pre>
      <p>
        <button
          type="button"
          class="small"
          onClick={() =>
            void navigator.clipboard.writeText(text).then(() => say("Copied."), complain)
          }
        >
          Copy
        </button>{" "}
        <button type="button" class="small" onClick={close}>
          Hide
        </button>
      </p>
    </li>
  );
}

function LabelDialog(given: {
  entry: Entry;
  close: () => void;
  save: (label: string | null) => void;
}) {
  const [label, setLabel] = useState(given.entry.label ?? "");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <Dialog
      title="A name to return to"
      close={given.close}
      actions={
        <>
          <button type="button" class="button" onClick={given.close}>
            Cancel
          </button>
          <button
            type="button"
            class="button primary"
            onClick={() => given.save(label.trim() || null)}
          >
            Save
          </button>
        </>
      }
    >
      <label class="field field-wide">
        <Icon name="label" size={14} />
        <span class="unseen">Label</span>
        <input
          ref={field}
          value={label}
          onInput={(event) => setLabel(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && given.save(label.trim() || null)}
        />
      </label>
    </Dialog>
  );
}

/** The results of calls, by the call that they answer. */
function matched(entries: Entry[]): Map<string, Entry> {
  const calls = new Set(
    entries
      .filter((each) => each.type === "tool_call")
      .map((each) => String(each.data?.call ?? "")),
  );
  const found = new Map<string, Entry>();
  for (const entry of entries) {
    const call = String(entry.data?.call ?? "");
    if (entry.type !== "tool_result" || !calls.has(call)) continue;
    entry.data = { ...entry.data, matched: true };
    found.set(call, entry);
  }
  return found;
}

/** The checkpoints at the ends of turns that changed something, counted from the last. */
function stepsOf(entries: Entry[]): [string, number][] {
  const steps = entries.filter((each) => each.type === "step_snapshot" && each.checkpoint);
  return steps.map((each, at) => [each.checkpoint!, at - steps.length]);
}

function roundName(name: string): string {
  return name.replace(/^session_/, "round ");
}
