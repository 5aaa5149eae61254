/** Build the rows of a conversation; tool results are part of their call's row. */

import type { Entry, TurnStatus } from "../../api";
import type { EstimatedRow } from "../../parts/measured";

export interface EntryRow extends EstimatedRow {
  entry: Entry;
}

export interface Rows {
  rows: EntryRow[];
  /** Tool results, by the entry of their call. */
  results: Map<string, Entry>;
  /** Key of the row that shows an entry, for entries without a row of their own. */
  rowOf: Map<string, string>;
}

const LINE_PX = 21;
const COLUMNS_PER_LINE = 96;
const DIFF_LINE_PX = 20;
const MAX_DIFF_LINES = 14;

export function rowsOf(entries: Entry[]): Rows {
  const calls = new Map<string, Entry>();
  const results = new Map<string, Entry>();
  const rowOf = new Map<string, string>();
  const rows: EntryRow[] = [];
  for (const entry of entries) {
    const call = callOf(entry);
    if (entry.type === "tool_call" && call) calls.set(call, entry);
    const asked = entry.type === "tool_result" ? calls.get(call) : undefined;
    if (asked) {
      results.set(asked.entry, entry);
      rowOf.set(entry.entry, asked.entry);
    } else if (isShown(entry)) {
      rows.push({ key: entry.entry, estimate: estimateHeight(entry), entry });
    } else if (rows.length) {
      rowOf.set(entry.entry, rows.at(-1)!.key);
    }
  }
  return { rows, results, rowOf };
}

/**
 * Return the status of each turn, by its last entry.
 *
 * A turn is identified by the checkpoint taken before its message.
 */
export function turnsByLastEntry(entries: Entry[], turns: TurnStatus[]): Map<string, TurnStatus> {
  const known = new Map(turns.map((turn) => [turn.checkpoint, turn]));
  const byEntry = new Map<string, TurnStatus>();
  let asked: string | null = null;
  for (const entry of entries) {
    if (entry.type === "user_input") asked = entry.checkpoint;
    const turn = entry.type === "step_snapshot" ? known.get(asked) : undefined;
    if (turn) byEntry.set(entry.entry, turn);
  }
  return byEntry;
}

function isShown(entry: Entry): boolean {
  switch (entry.type) {
    case "user_input":
    case "tool_call":
    case "tool_result":
    case "file_edit":
    case "step_snapshot":
    case "compact_marker":
    case "branch_summary":
      return true;
    case "assistant_output":
    case "system_message":
      return entry.content.trim() !== "";
    default:
      return false;
  }
}

function callOf(entry: Entry): string {
  return typeof entry.data?.call === "string" ? entry.data.call : "";
}

/** Estimate an entry's height; better estimates move the scroll bar less. */
function estimateHeight(entry: Entry): number {
  switch (entry.type) {
    case "user_input":
      return 84 + lines(entry.content) * LINE_PX;
    case "assistant_output":
      return lines(entry.content) * LINE_PX;
    case "file_edit": {
      const diff = typeof entry.data?.diff === "string" ? entry.data.diff.split("\n").length : 0;
      return 30 + Math.min(diff, MAX_DIFF_LINES) * DIFF_LINE_PX;
    }
    case "step_snapshot":
      return 38;
    default:
      return 32;
  }
}

function lines(text: string): number {
  let count = 0;
  for (const line of text.split("\n"))
    count += Math.max(1, Math.ceil(line.length / COLUMNS_PER_LINE));
  return count;
}
