/** Render the entries of a conversation by type. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Entry, TurnStatus } from "../../api";
import { DiffBlock } from "../../diff/block";
import { count, firstLine, formatDuration } from "../../format";
import { Guard } from "../../parts/guard";
import { Icon } from "../../parts/icons";
import { Markdown } from "../../parts/markdown";
import { Counts, Path, StatusLetter, TimeAgo } from "../../parts/small";
import { urlFor } from "../../router";

export interface EntryActions {
  goTo: (entry: Entry) => void;
  fork: (entry: Entry) => void;
  label: (entry: Entry) => void;
  project: string;
  target: string | null;
  /** The review status of each turn, by its last entry. */
  turns: Map<string, TurnStatus>;
  /** Tool results, by the entry of their call. */
  results: Map<string, Entry>;
  /** Unfolded calls; kept here because rows out of view are unmounted. */
  unfolded: Set<string>;
}

export function EntryView({ entry, act }: { entry: Entry; act: EntryActions }) {
  const classes = ["entry", `entry-${entry.type}`];
  if (entry.entry === act.target) classes.push("is-target");
  if (entry.is_compacted) classes.push("is-compacted");
  return (
    <li data-key={entry.entry} class={classes.join(" ")}>
      <Guard fallback={() => <FailedEntry entry={entry} />}>
        <Content entry={entry} act={act} />
      </Guard>
    </li>
  );
}

function FailedEntry({ entry }: { entry: Entry }) {
  return (
    <div class="trouble">
      <Icon name="warning" />
      <div>
        <p>This entry could not be shown. Its stored text:</p>
        <Output text={typeof entry.content === "string" ? entry.content : ""} />
      </div>
    </div>
  );
}

function Content({ entry, act }: { entry: Entry; act: EntryActions }) {
  switch (entry.type) {
    case "user_input":
      return <UserMessage entry={entry} act={act} />;
    case "assistant_output":
      return <Markdown text={entry.content} />;
    case "tool_call":
      return <Call entry={entry} result={act.results.get(entry.entry)} act={act} />;
    case "tool_result":
      return <LooseResult entry={entry} act={act} />;
    case "file_edit":
      return <Edit entry={entry} />;
    case "step_snapshot":
      return <StepCheckpoint entry={entry} act={act} />;
    case "compact_marker":
      return (
        <Marker icon="more">
          {count(Number(entry.data?.compactedCount ?? 0), "entry", "entries")} before this were
          compacted
          {typeof entry.data?.summary === "string" && <Markdown text={entry.data.summary} />}
        </Marker>
      );
    case "branch_summary":
      return (
        <Marker icon="branch">
          Summary of the branch that was left{entry.data?.skipFiles === true && " (files skipped)"}:{" "}
          <Markdown text={entry.content} />
        </Marker>
      );
    case "system_message":
      return <Marker icon="session">{firstLine(entry.content, 240)}</Marker>;
    default:
      return null;
  }
}

function UserMessage({ entry, act }: { entry: Entry; act: EntryActions }) {
  return (
    <article class="asked" aria-label="Your message">
      <Markdown text={entry.content} />
      <footer class="asked-foot">
        <TimeAgo at={entry.created_at} />
        {entry.label && <span class="tag">{entry.label}</span>}
        <span class="bar-space" />
        <button type="button" class="small" onClick={() => act.label(entry)}>
          <Icon name="label" size={13} /> Label
        </button>
        <button type="button" class="small" onClick={() => act.fork(entry)}>
          <Icon name="branch" size={13} /> Fork
        </button>
        <button
          type="button"
          class="small"
          onClick={() => act.goTo(entry)}
          title="Return to the state before this message"
        >
          <Icon name="undo" size={13} /> Return here
        </button>
      </footer>
    </article>
  );
}

const ICONS: Record<string, string> = {
  bash: "terminal",
  shell: "terminal",
  edit: "edit",
  write: "edit",
  read: "file",
  grep: "search",
};

function Call({
  entry,
  result,
  act,
}: {
  entry: Entry;
  result: Entry | undefined;
  act: EntryActions;
}) {
  const data = entry.data ?? {};
  const name = String(data.name ?? "tool");
  const failed = data.status === "error" || result?.data?.is_error === true;
  const running = data.status === "running" || data.status === "pending";
  const output = String(data.output ?? result?.content ?? "");
  const input = (data.input ?? {}) as Record<string, unknown>;
  return (
    <Folded
      entry={entry}
      act={act}
      summary={
        <>
          <Icon name={ICONS[name.toLowerCase()] ?? "tool"} size={14} />
          <span class="call-name">{name}</span>
          <span class="call-gist">{callSummary(input)}</span>
          {failed && <span class="tag call-failed">failed</span>}
          {running && <span class="tag">running</span>}
          {typeof data.duration === "number" && (
            <span class="call-time">{formatDuration(data.duration)}</span>
          )}
        </>
      }
    >
      {Object.keys(input).length > 0 && (
        <pre class="code" tabIndex={0} role="region" aria-label="Input">
          {JSON.stringify(input, null, 2)}
        </pre>
      )}
      {output ? <Output text={output} /> : <p class="faint">No output.</p>}
    </Folded>
  );
}

/** A collapsible block that renders its children only when open. */
function Folded(props: {
  entry: Entry;
  act: EntryActions;
  summary: ComponentChildren;
  children: ComponentChildren;
}) {
  const { unfolded } = props.act;
  const id = props.entry.entry;
  const [open, setOpen] = useState(unfolded.has(id));
  return (
    <details
      class="call"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now) unfolded.add(id);
        else unfolded.delete(id);
        setOpen(now);
      }}
    >
      <summary>{props.summary}</summary>
      {open && <div class="call-inside">{props.children}</div>}
    </details>
  );
}

function callSummary(input: Record<string, unknown>): string {
  const known = ["command", "file_path", "path", "pattern", "query", "url", "description"];
  const name = known.find((each) => typeof input[each] === "string");
  const first = name ? input[name] : Object.values(input).find((each) => typeof each === "string");
  return typeof first === "string" ? firstLine(first, 140) : "";
}

const MAX_SHOWN_CHARS = 4000;

function Output({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > MAX_SHOWN_CHARS;
  return (
    <>
      <pre class="code output" tabIndex={0} role="region" aria-label="Output">
        {cut ? text.slice(0, MAX_SHOWN_CHARS) : text}
      </pre>
      {cut && (
        <button type="button" class="bare link" onClick={() => setAll(true)}>
          Show {count(text.length - MAX_SHOWN_CHARS, "more character")}
        </button>
      )}
    </>
  );
}

function LooseResult({ entry, act }: { entry: Entry; act: EntryActions }) {
  const summary = (
    <>
      <Icon name="tool" size={14} />
      <span class="call-name">Result</span>
      <span class="call-gist">{firstLine(entry.content, 140)}</span>
    </>
  );
  return (
    <Folded entry={entry} act={act} summary={summary}>
      <Output text={entry.content} />
    </Folded>
  );
}

function Edit({ entry }: { entry: Entry }) {
  const data = entry.data ?? {};
  const path = String(data.path ?? "");
  const diff = typeof data.diff === "string" ? data.diff : "";
  return (
    <div class="edit">
      <div class="edit-head">
        <StatusLetter of={String(data.operation ?? "modify")} />
        <Path path={path} />
        <Counts additions={Number(data.additions ?? 0)} deletions={Number(data.deletions ?? 0)} />
      </div>
      {diff && <DiffBlock patch={diff} path={path} />}
    </div>
  );
}

function StepCheckpoint({ entry, act }: { entry: Entry; act: EntryActions }) {
  const diff = (entry.data?.diff ?? {}) as Record<string, string[]>;
  const parts = ["added", "modified", "deleted"]
    .filter((each) => diff[each]?.length)
    .map((each) => `${diff[each]!.length} ${each}`);
  const turn = act.turns.get(entry.entry);
  return (
    <div class="step">
      <span class="step-mark" aria-hidden="true" />
      <span class="step-text">
        <strong>Checkpoint</strong>{" "}
        <span class="faint">{parts.join(", ") || "nothing changed"}</span>
        {turn && <span class={`tag turn-${turn.status}`}>{turn.status}</span>}
      </span>
      <span class="bar-space" />
      {entry.checkpoint && (
        <a class="small" href={urlFor("checkpoints", act.project, { c: entry.checkpoint })}>
          Show checkpoint
        </a>
      )}
      <button
        type="button"
        class="small"
        onClick={() => act.goTo(entry)}
        title="Return to the state after this turn"
      >
        <Icon name="undo" size={13} /> Return here
      </button>
    </div>
  );
}

function Marker({ icon, children }: { icon: string; children: ComponentChildren }) {
  return (
    <div class="mark">
      <Icon name={icon} size={14} />
      <div>{children}</div>
    </div>
  );
}
