/** Search all sessions while typing; a hit links to its entry. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type SearchResult, type Hit } from "../../api";
import { count } from "../../format";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { Select } from "../../parts/select";
import { EmptyState, ErrorBox, Highlighted, Key, Skeleton, TimeAgo } from "../../parts/small";
import { go, route, setQuery, urlFor } from "../../router";
import { projects } from "../../state";

const TYPES: [string, string][] = [
  ["user_input", "You said"],
  ["assistant_output", "Agent said"],
  ["tool_call", "Tools"],
  ["file_edit", "File edits"],
];
const TIMES: [string, string][] = [
  ["", "Any time"],
  ["1", "Last day"],
  ["7", "Last week"],
  ["30", "Last month"],
  ["365", "Last year"],
];
const PAGE_SIZE = 40;
const TYPING_PAUSE_MS = 90;

const NAMES: Record<string, string> = {
  user_input: "you",
  assistant_output: "agent",
  tool_call: "tool",
  tool_result: "result",
  file_edit: "edit",
  branch_summary: "summary",
};

const CODE = ["tool_call", "tool_result", "file_edit"];

export default function Search() {
  const { query } = route.value;
  const filters = {
    q: query.get("q") ?? "",
    project: query.get("in") ?? "",
    agent: query.get("agent") ?? "",
    type: query.get("type") ?? "",
    path: query.get("path") ?? "",
    days: query.get("days") ?? "",
  };
  const key = JSON.stringify(filters);
  const { results, problem, more, loading } = useSearch(filters, key);
  const field = useRef<HTMLInputElement>(null);
  const [at, setAt] = useState(-1);
  useEffect(() => field.current?.focus(), []);
  useEffect(() => setAt(-1), [key]);
  const hits = results?.hits ?? [];
  const links = () => [...document.querySelectorAll<HTMLElement>(".hit")];
  const move = (by: number) => {
    const next = Math.min(Math.max(at + by, 0), hits.length - 1);
    setAt(next);
    links()[next]?.focus();
  };
  useKeys("Search", [
    { key: "j", does: "next hit", run: () => move(1) },
    { key: "k", does: "previous hit", run: () => move(-1) },
  ]);
  const idle = !filters.q && !filters.path;
  return (
    <div class="view">
      <header class="bar search-bar">
        <h1 class="unseen">Search</h1>
        <label class="field field-wide field-large">
          <Icon name="search" />
          <span class="unseen">Search everything</span>
          <input
            ref={field}
            data-search
            type="search"
            placeholder="Search everything that was said and done"
            value={filters.q}
            onInput={(event) => setQuery({ q: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "ArrowDown" || event.key === "Enter") {
                event.preventDefault();
                if (event.key === "Enter" && hits[0]) go(entryUrl(hits[0]));
                else move(1);
              }
              if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
        </label>
      </header>
      <FilterBar filters={filters}>
        {results && !idle
          ? results.total === null
            ? `${hits.length} or more hits`
            : count(results.total, "hit")
          : ""}
      </FilterBar>
      <div class="page-scroll" tabIndex={0} role="group" aria-label="Hits">
        <div class="column">
          {problem && <ErrorBox problem={problem} />}
          {results?.problems.map((text) => (
            <ErrorBox key={text} problem={new Error(text)} />
          ))}
          {idle ? (
            <EmptyState icon="search" title="Search all sessions">
              <p>
                Find words, file names, commands and code. Text is taken literally: <code>C++</code>
                , <code>foo-bar</code> and quotes need no escaping.
              </p>
              <p>
                <Key>/</Key> opens the search from any view, <Key>Enter</Key> opens the first hit.
              </p>
            </EmptyState>
          ) : !results && loading ? (
            <Skeleton lines={6} height={84} />
          ) : !hits.length && !problem ? (
            <EmptyState icon="search" title="Nothing found">
              <p>All words must be in one entry. Try fewer words, or remove a filter.</p>
            </EmptyState>
          ) : (
            <Hits hits={hits} />
          )}
          {results &&
            hits.length > 0 &&
            (results.total === null || hits.length < results.total) && (
              <button type="button" class="button" onClick={more}>
                More
              </button>
            )}
        </div>
      </div>
    </div>
  );
}

function FilterBar({ filters, children }: { filters: Filters; children: ComponentChildren }) {
  return (
    <div class="filters">
      {TYPES.map(([type, label]) => (
        <button
          key={type}
          type="button"
          class="chip"
          aria-pressed={filters.type === type}
          onClick={() => setQuery({ type: filters.type === type ? null : type })}
        >
          {label}
        </button>
      ))}
      <Select
        label="Project"
        value={filters.project}
        choose={(value) => setQuery({ in: value })}
        options={[
          ["", "All projects"],
          ...(projects.value ?? []).map((each): [string, string] => [each.project, each.name]),
        ]}
      />
      <Select
        label="Time"
        value={filters.days}
        choose={(value) => setQuery({ days: value })}
        options={TIMES}
      />
      <label class="field field-small">
        <span class="unseen">Agent</span>
        <input
          placeholder="agent"
          value={filters.agent}
          onInput={(event) => setQuery({ agent: event.currentTarget.value })}
        />
      </label>
      <label class="field field-small">
        <span class="unseen">File, folder or glob</span>
        <input
          placeholder="file or glob"
          value={filters.path}
          onInput={(event) => setQuery({ path: event.currentTarget.value })}
        />
      </label>
      <span class="bar-space" />
      <span class="faint" role="status">
        {children}
      </span>
    </div>
  );
}

function Hits({ hits }: { hits: Hit[] }) {
  return (
    <ol class="hits">
      {hits.map((hit) => (
        <li key={`${hit.project} ${hit.entry}`}>
          <a class="hit" href={entryUrl(hit)}>
            <span class="hit-head">
              <span class="hit-title">{hit.title || "Untitled session"}</span>
              <span class="tag">{NAMES[hit.type] ?? hit.type}</span>
              <span class="bar-space" />
              <span class="faint">
                {hit.agent} · <TimeAgo at={hit.created_at} />
              </span>
            </span>
            <span class={CODE.includes(hit.type) ? "hit-text hit-code" : "hit-text"}>
              <Highlighted text={hit.snippet.replace(/\n\s*\n/g, "\n")} />
            </span>
          </a>
        </li>
      ))}
    </ol>
  );
}

/** Return the URL of a hit's entry; hits name the project by folder, URLs by id. */
function entryUrl(hit: Hit): string {
  const project = projects.value?.find(
    (each) => each.root === hit.project || each.project === hit.project,
  );
  return urlFor("session", project?.project ?? hit.project, {
    id: hit.session,
    entry: hit.entry,
    seq: hit.seq,
  });
}

interface Filters {
  q: string;
  project: string;
  agent: string;
  type: string;
  path: string;
  days: string;
}

function useSearch(filters: Filters, key: string) {
  const [results, setResults] = useState<SearchResult | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [loading, setLoading] = useState(true);
  const load = async (offset: number, signal: AbortSignal | undefined) => {
    const { days, ...rest } = filters;
    const since = days ? new Date(Date.now() - Number(days) * 86_400_000).toISOString() : "";
    return api.search(
      { ...rest, type: rest.type ? [rest.type] : [], since, offset, limit: PAGE_SIZE },
      signal,
    );
  };
  useEffect(() => {
    const control = new AbortController();
    if (!filters.q && !filters.path) {
      setResults(null);
      return undefined;
    }
    setLoading(true);
    const timer = window.setTimeout(() => {
      load(0, control.signal).then(
        (page) => {
          setResults(page);
          setProblem(null);
          setLoading(false);
        },
        (failure) => {
          if (control.signal.aborted) return;
          setProblem(failure as Error);
          setLoading(false);
        },
      );
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [key]);
  const more = () =>
    void load(results?.hits.length ?? 0, undefined).then(
      (page) => setResults((old) => old && { ...page, hits: [...old.hits, ...page.hits] }),
      (failure) => setProblem(failure as Error),
    );
  return { results, problem, more, loading };
}
