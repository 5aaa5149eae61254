/** The bar above the review: totals, grouping, columns, stepping, and deciding on everything. */

import type { PendingHunk } from "../../api";
import { ColumnsChoice, type Columns } from "../../parts/columns-choice";
import { Icon } from "../../parts/icons";
import { narrow } from "../../parts/narrow";
import { Counts, Segments } from "../../parts/small";
import { setQuery } from "../../router";
import type { Verdict } from "./decisions";
import { summary, type Group, type Grouping } from "./groups";

export function ReviewBar(props: {
  groups: Group[];
  hunks: PendingHunk[];
  /** Index of the current hunk. */
  at: number;
  /** The session and turn that the review is limited to, if any. */
  filter: string | null;
  by: Grouping;
  columns: Columns;
  chooseBy: (by: Grouping) => void;
  chooseColumns: (columns: Columns) => void;
  step: (by: number) => void;
  ask: (verdict: Verdict) => void;
}) {
  const { groups, hunks } = props;
  return (
    <header class="bar">
      <h1>Review</h1>
      {hunks.length > 0 && (
        <span class="bar-note">
          {summary(groups)} <Counts {...totals(hunks)} />
        </span>
      )}
      {props.filter && (
        <button type="button" class="chip" onClick={() => setQuery({ session: null, turn: null })}>
          {props.filter} <Icon name="close" size={12} />
          <span class="unseen">Show all pending changes</span>
        </button>
      )}
      <span class="bar-space" />
      <Segments
        label="Grouped by"
        value={props.by}
        choose={props.chooseBy}
        options={[
          { value: "session", label: "Session" },
          { value: "turn", label: "Turn" },
          { value: "file", label: "File" },
        ]}
      />
      {!narrow.value && <ColumnsChoice value={props.columns} choose={props.chooseColumns} />}
      <Stepper at={props.at} total={hunks.length} step={props.step} />
      <button
        type="button"
        class="button"
        disabled={!hunks.length}
        onClick={() => props.ask("undo")}
      >
        Undo all
      </button>
      <button
        type="button"
        class="button primary"
        disabled={!hunks.length}
        onClick={() => props.ask("keep")}
      >
        Keep all
      </button>
    </header>
  );
}

function Stepper({ at, total, step }: { at: number; total: number; step: (by: number) => void }) {
  return (
    <div class="stepper" role="group" aria-label="Changes">
      <button
        type="button"
        aria-label="Previous change"
        title="Previous change (k)"
        onClick={() => step(-1)}
        disabled={!total}
      >
        <Icon name="up" />
      </button>
      <span class="stepper-place" aria-live="polite">
        Change {total ? at + 1 : 0} of {total}
      </span>
      <button
        type="button"
        aria-label="Next change"
        title="Next change (j)"
        onClick={() => step(1)}
        disabled={!total}
      >
        <Icon name="down" />
      </button>
    </div>
  );
}

function totals(hunks: PendingHunk[]): { additions: number; deletions: number } {
  return {
    additions: hunks.reduce((sum, each) => sum + each.additions, 0),
    deletions: hunks.reduce((sum, each) => sum + each.deletions, 0),
  };
}
