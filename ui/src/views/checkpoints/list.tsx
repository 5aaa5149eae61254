/** The list of checkpoints, newest first. */

import type { Checkpoint } from "../../api";
import { count, firstLine, formatDay, formatTime } from "../../format";
import { Counts } from "../../parts/small";

export const KINDS: Record<string, string> = {
  manual: "Taken by hand",
  initial: "Starting point",
  turn: "Before a turn",
  step: "After a turn",
  safety: "Before a restore",
  restore: "After a restore",
  restored: "After a restore",
  approved: "Approved",
  watch: "Taken by mulligan watch",
  recovered: "Recovered",
};

export function CheckpointList(props: {
  checkpoints: Checkpoint[];
  chosen: string | null;
  pinned: string | null;
  choose: (id: string) => void;
  changed: { files: number; additions: number; deletions: number } | null;
}) {
  let before = "";
  return (
    <ol class="checkpoints-list">
      <li>
        <button
          type="button"
          class={props.chosen === "now" ? "point is-active" : "point"}
          aria-current={props.chosen === "now" ? "true" : undefined}
          onClick={() => props.choose("now")}
        >
          <span class="point-dot point-now" />
          <span class="point-text">Now, on the disk</span>
          <span class="point-facts">
            {props.changed
              ? props.changed.files
                ? `${count(props.changed.files, "file")} changed since`
                : "same as the latest checkpoint"
              : "scanning…"}
            {props.changed && <Counts {...props.changed} />}
          </span>
        </button>
      </li>
      {props.checkpoints.map((each) => {
        const date = formatDay(each.created_at);
        const head = date !== before;
        before = date;
        return (
          <li key={each.checkpoint}>
            {head && <h2 class="sessions-day">{date}</h2>}
            <button
              type="button"
              class={props.chosen === each.checkpoint ? "point is-active" : "point"}
              aria-current={props.chosen === each.checkpoint ? "true" : undefined}
              onClick={() => props.choose(each.checkpoint)}
            >
              <span class={`point-dot point-${each.kind}`} />
              <span class="point-text">{titleOf(each)}</span>
              <span class="point-facts">
                {formatTime(each.created_at)} · {KINDS[each.kind] ?? each.kind}
                {props.pinned === each.checkpoint && (
                  <span class="tag turn-pending">from here</span>
                )}
                {!each.coverage.complete && <span class="tag call-failed">incomplete</span>}
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}

/** Return the checkpoint's message without the prefix that its kind repeats. */
export function titleOf({ message, kind }: Checkpoint): string {
  return firstLine(message.replace(/^Before user message: /, ""), 90) || KINDS[kind] || kind;
}
