/** Small components that all views use. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { PendingStats } from "../api";
import { count, formatAgo, formatDateTime, formatNumber, splitPath } from "../format";
import { Icon } from "./icons";

const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 20_000);

/** A relative time, with the exact time as its tooltip. */
export function TimeAgo({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatAgo(at, now.value)}
    </time>
  );
}

/** Lines pending review as `+N −N`; nothing if there are none. */
export function Badge({ of }: { of: PendingStats | null | undefined }) {
  if (!of || (of.additions === 0 && of.deletions === 0)) return null;
  return <Counts additions={of.additions} deletions={of.deletions} />;
}

export function Counts({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span class="counts">
      {additions > 0 && (
        <span class="plus" title={`${count(additions, "line")} added`}>
          +{formatNumber(additions)}
        </span>
      )}
      {deletions > 0 && (
        <span class="minus" title={`${count(deletions, "line")} deleted`}>
          −{formatNumber(deletions)}
        </span>
      )}
    </span>
  );
}

export function Path({ path }: { path: string }) {
  const [folder, name] = splitPath(path);
  return (
    <span class="path" title={path}>
      <span class="path-folder">{folder}</span>
      <span class="path-name">{name}</span>
    </span>
  );
}

const LETTERS: Record<string, string> = {
  added: "A",
  created: "A",
  create: "A",
  modified: "M",
  modify: "M",
  deleted: "D",
  delete: "D",
  renamed: "R",
  rename: "R",
};

export function StatusLetter({ of }: { of: string }) {
  const letter = LETTERS[of] ?? "M";
  return (
    <abbr class={`letter letter-${letter}`} title={of}>
      {letter}
    </abbr>
  );
}

/** The content of an empty view: what it is for, and what to do next. */
export function EmptyState(props: { icon: string; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={props.icon} size={28} />
      </span>
      <h2>{props.title}</h2>
      <div class="empty-text">{props.children}</div>
    </div>
  );
}

/** An error message with a button to try again. */
export function ErrorBox({ problem, retry }: { problem: Error; retry?: () => void }) {
  return (
    <div class="trouble" role="alert">
      <Icon name="warning" />
      <p>{problem.message}</p>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A placeholder in the shape of the content that is loading, so that nothing jumps. */
export function Skeleton(props: { lines?: number; height?: number; flush?: boolean }) {
  const { lines = 6, height = 44, flush } = props;
  return (
    <div
      class={flush ? "skeleton skeleton-flush" : "skeleton"}
      aria-busy="true"
      aria-label="Loading"
    >
      {Array.from({ length: lines }, (_, each) => (
        <div key={each} class="skeleton-line" style={{ height: `${height}px` }} />
      ))}
    </div>
  );
}

interface Option<T> {
  value: T;
  label: string;
  icon?: string;
}

/** A group of buttons of which one is pressed. */
export function Segments<T extends string>(props: {
  label: string;
  value: T;
  options: Option<T>[];
  choose: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(({ value, label, icon }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          title={icon ? label : undefined}
          aria-label={icon ? label : undefined}
          onClick={() => props.choose(value)}
        >
          {icon ? <Icon name={icon} /> : label}
        </button>
      ))}
    </div>
  );
}

export function Key({ children }: { children: ComponentChildren }) {
  return <kbd>{children}</kbd>;
}

/** Render a search snippet: `<mark>` becomes an element, everything else stays text. */
export function Highlighted({ text }: { text: string }) {
  const parts = text.split(/<mark>([\s\S]*?)<\/mark>/);
  return <>{parts.map((part, each) => (each % 2 ? <mark key={each}>{part}</mark> : part))}</>;
}
