/** Home: the projects and their sessions, newest first, updated live. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type ProjectRow } from "../../api";
import { count, formatDay, statusLabel } from "../../format";
import { useKeys } from "../../keys";
import { listen } from "../../live";
import { Icon } from "../../parts/icons";
import { Badge, EmptyState, ErrorBox, Skeleton, TimeAgo } from "../../parts/small";
import { go, route, setQuery, urlFor } from "../../router";
import { loadProjects, MAX_PROJECT_CARDS, projects, projectsProblem, showError } from "../../state";
import { PAGE_SIZE, SessionFeed, type ListedSession } from "./session-feed";

const CHANGES = [
  "session",
  "session_changed",
  "session_deleted",
  "operation",
  "operation_changed",
  "files",
];

const REFRESH_DELAY_MS = 250;

export default function Home() {
  const all = projects.value;
  if (projectsProblem.value && !all)
    return <ErrorBox problem={projectsProblem.value} retry={() => void loadProjects()} />;
  if (!all)
    return (
      <div class="view home">
        <header class="bar">
          <h1>Sessions</h1>
        </header>
        <div class="page-scroll">
          <Skeleton lines={7} height={56} />
        </div>
      </div>
    );
  if (!all.length) return <Welcome />;
  return <Sessions all={all} />;
}

function Sessions({ all }: { all: ProjectRow[] }) {
  const { query } = route.value;
  const only = query.get("project");
  const words = query.get("filter") ?? "";
  const [current, setCurrent] = useState(-1);
  const end = useRef<HTMLDivElement>(null);
  const { feed, more } = useSessionFeed(all, only);

  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry!.isIntersecting && more(), {
      rootMargin: "600px",
    });
    if (end.current) observer.observe(end.current);
    return () => observer.disconnect();
  });

  const wanted = words.toLowerCase();
  const shown = feed.sessions.filter(
    (each) =>
      !wanted ||
      [each.title, each.agent, each.model ?? "", each.where.name, statusLabel(each.status)].some(
        (text) => text.toLowerCase().includes(wanted),
      ),
  );
  const move = (by: number) => {
    const next = Math.min(Math.max(current + by, 0), shown.length - 1);
    setCurrent(next);
    document.querySelectorAll<HTMLElement>(".session-row")[next]?.focus();
  };
  useKeys("Sessions", [
    { key: "j", does: "next session", run: () => move(1) },
    { key: "k", does: "previous session", run: () => move(-1) },
    {
      key: "f",
      does: "filter",
      run: () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
    },
  ]);

  return (
    <div class="view home">
      <header class="bar">
        <h1>Sessions</h1>
        <span class="bar-space" />
        <label class="field">
          <Icon name="search" size={14} />
          <span class="unseen">Filter the sessions</span>
          <input
            data-filter
            type="search"
            placeholder="Filter by title, agent, model"
            value={words}
            onInput={(event) => setQuery({ filter: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter" && words) go(urlFor("search", null, { q: words }));
              if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
        </label>
      </header>
      <div class="page-scroll" tabIndex={0} role="group" aria-label="Sessions">
        <div class="column">
          <Cards all={all} only={only} />
          {feed.problem && <ErrorBox problem={feed.problem} />}
          {!shown.length && feed.ended ? (
            words ? (
              <EmptyState icon="search" title={`No session matches “${words}”`}>
                <p>
                  The filter looks at titles, agents and models.{" "}
                  <a href={urlFor("search", null, { q: words })}>Search what was said instead</a>
                </p>
              </EmptyState>
            ) : (
              <NoSessions />
            )
          ) : (
            <List shown={shown} many={all.length > 1 && !only} />
          )}
          {!feed.ended && <Skeleton lines={shown.length ? 1 : 6} height={52} />}
          <div ref={end} />
        </div>
      </div>
    </div>
  );
}

/** Load the sessions of all projects, or of `only` one, and reload them after live events. */
function useSessionFeed(all: ProjectRow[], only: string | null) {
  const [, redraw] = useState(0);
  const chosen = useMemo(
    () => (only ? all.filter((each) => each.project === only) : all),
    [only, all.map((each) => each.project).join()],
  );
  const latest = useRef<{ projects: ProjectRow[]; feed: SessionFeed } | null>(null);
  if (latest.current?.projects !== chosen)
    latest.current = { projects: chosen, feed: new SessionFeed(chosen) };

  useEffect(() => {
    void latest.current!.feed.next().then(() => redraw((each) => each + 1));
    const refresh = async () => {
      const { projects } = await api.projects();
      const fresh = new SessionFeed(projects.filter((each) => !only || each.project === only));
      // Load as many sessions as are shown before replacing the list, so that it keeps its length.
      await fresh.next(Math.max(PAGE_SIZE, latest.current!.feed.sessions.length));
      if (latest.current?.projects !== chosen) return;
      latest.current.feed = fresh;
      redraw((each) => each + 1);
    };
    let timer: number | undefined;
    const stop = listen((event) => {
      const isRelevant = CHANGES.includes(event.kind) || event.kind === "reconnected";
      if (!isRelevant || timer !== undefined) return;
      timer = window.setTimeout(() => {
        timer = undefined;
        void refresh();
      }, REFRESH_DELAY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [chosen]);

  const more = () =>
    void latest.current!.feed.next().then((some) => some && redraw((each) => each + 1));
  return { feed: latest.current.feed, more };
}

function Cards({ all, only }: { all: ProjectRow[]; only: string | null }) {
  return (
    <ul class="cards" aria-label="Projects">
      {all.slice(0, MAX_PROJECT_CARDS).map((each) => {
        const pending = Object.values(each.pending ?? {});
        const sum = {
          additions: pending.reduce((total, one) => total + one.additions, 0),
          deletions: pending.reduce((total, one) => total + one.deletions, 0),
          files: pending.reduce((total, one) => total + one.files, 0),
        };
        const active = only === each.project;
        return (
          <li key={each.project} class={active ? "card is-active" : "card"}>
            <button
              type="button"
              class="card-main"
              aria-pressed={active}
              title={active ? "Show all projects" : "Show only this project"}
              onClick={() => setQuery({ project: active ? null : each.project })}
            >
              <span class="card-name">
                <Icon name="folder" /> {each.name}
              </span>
              <span class="card-root">{each.root}</span>
              <span class="card-facts">
                {each.problem
                  ? each.problem
                  : !each.exists
                    ? "The folder was moved or deleted. Its history is still here."
                    : `${count(each.sessions, "session")} · ${count(each.checkpoints, "checkpoint")}`}
              </span>
            </button>
            {sum.files > 0 && (
              <a class="card-pending" href={urlFor("review", each.project)}>
                Review <Badge of={sum} />
              </a>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function List({ shown, many }: { shown: ListedSession[]; many: boolean }) {
  let before = "";
  return (
    <ul class="sessions">
      {shown.map((each) => {
        const date = formatDay(each.updated_at);
        const head = date !== before;
        before = date;
        return (
          <li key={`${each.where.project} ${each.session}`}>
            {head && <h2 class="sessions-day">{date}</h2>}
            <div class="session-line">
              <a
                class="session-row"
                href={urlFor("session", each.where.project, { id: each.session })}
              >
                <span class={`state state-${each.status}`} title={statusLabel(each.status)} />
                <span class="session-title">{each.title || "Untitled session"}</span>
                <span class="session-facts">
                  {many && <span>{each.where.name}</span>}
                  {each.agent && <span class="agent">{each.agent}</span>}
                  {each.model && <span>{each.model}</span>}
                  {each.status !== "stopped" && <span>{statusLabel(each.status)}</span>}
                </span>
              </a>
              {each.pending && each.pending.files > 0 && (
                <a
                  class="session-pending"
                  href={urlFor("review", each.where.project, { session: each.session })}
                >
                  <span class="unseen">
                    Review what is pending in {each.title || "this session"}:{" "}
                  </span>
                  <Badge of={each.pending} />
                </a>
              )}
              <span class="session-when">
                <TimeAgo at={each.updated_at} />
              </span>
            </div>
          </li>
        );
      })}
    </ul>
  );
}

function NoSessions() {
  return (
    <EmptyState icon="session" title="No sessions yet">
      <p>
        Sessions appear here when an agent with Mulligan's hooks works in a project. Install the
        hooks with <code>mulligan install claude-code</code>, then start the agent. To import its
        earlier sessions, run:
      </p>
      <pre class="code">mulligan import claude-code</pre>
    </EmptyState>
  );
}

function Welcome() {
  const [path, setPath] = useState("");
  const [busy, setBusy] = useState(false);
  const open = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const opened = await api.openProject(path);
      await api.takeCheckpoint(opened.project, "First checkpoint");
      await loadProjects();
    } catch (problem) {
      showError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="view">
      <EmptyState icon="folder" title="Welcome. Which project should Mulligan protect?">
        <p>
          Mulligan records checkpoints of a folder and of agents' work in it, so that you can
          inspect, keep or undo every change. It writes nothing into the folder itself.
        </p>
        <form class="newcomer" onSubmit={(event) => void open(event)}>
          <label class="field field-wide">
            <Icon name="folder" size={14} />
            <span class="unseen">Folder of the project</span>
            <input
              value={path}
              placeholder="/home/you/code/project"
              onInput={(event) => setPath(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="button primary" disabled={!path || busy}>
            {busy ? "Taking the first checkpoint…" : "Protect this folder"}
          </button>
        </form>
        <p class="faint">
          Or, in a terminal: <code>mulligan up ~/code/project</code>. To look around first:{" "}
          <code>mulligan demo</code>
        </p>
      </EmptyState>
    </div>
  );
}
