/** Keep and undo pending changes, and take such decisions back. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api, ApiError, type PendingHunk, type Review } from "../../api";
import { count } from "../../format";
import type { Resource } from "../../resource";
import { showError, showToast } from "../../state";
import { lastReviewDecision, redoOperations, undoOperations } from "../../undo";

export type Verdict = "keep" | "undo";

interface Decision {
  hunk: string | null;
  operations: number[];
}

interface Outcome {
  operations: number[];
  /** Hunks that the server left alone, and why. */
  skipped: string[];
  reason: string;
}

export interface Decisions {
  /** Hunks that were decided here and that the server may still list as pending. */
  decided: Set<string>;
  decide: (verdict: Verdict, chosen: PendingHunk[], next: string | null, force?: boolean) => void;
  undoLast: () => void;
}

/**
 * Send decisions to the server, one after the other.
 *
 * A decided hunk disappears at once and the selection moves on; if the server leaves it alone, it
 * comes back.
 */
export function useDecisions(
  project: string,
  pending: Resource<Review>,
  setCurrent: (change: (now: string | null) => string | null) => void,
): Decisions {
  const [decided, setDecided] = useState<Set<string>>(new Set());
  const decisions = useRef<Decision[]>([]);
  const queue = useRef<Promise<unknown>>(Promise.resolve());

  // Forget decided hunks that the server no longer lists.
  useEffect(() => {
    if (!pending.data || !decided.size) return;
    const listed = new Set(
      pending.data.files.flatMap((file) => file.hunks.map((each) => each.hunk)),
    );
    const still = [...decided].filter((each) => listed.has(each));
    if (still.length !== decided.size) setDecided(new Set(still));
  }, [pending.data]);

  /** Run requests in the order of the decisions: keys come faster than replies. */
  function inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.current.then(work, work);
    queue.current = done;
    return done;
  }

  async function decide(
    verdict: Verdict,
    chosen: PendingHunk[],
    next: string | null,
    force = false,
  ): Promise<void> {
    if (!chosen.length) return;
    const ids = chosen.map((each) => each.hunk);
    setDecided((old) => new Set([...old, ...ids]));
    setCurrent(() => next);
    const putBack = (skipped: string[]) => {
      setDecided((old) => new Set([...old].filter((each) => !skipped.includes(each))));
      setCurrent((now) => (now === next ? skipped[0]! : now));
    };
    try {
      const { skipped, reason, decision } = await inOrder(async () => {
        const { operations, ...rest } = await sendDecision(project, verdict, ids, force);
        const decision = { hunk: ids[0]!, operations };
        if (operations.length) decisions.current.push(decision);
        return { ...rest, decision };
      });
      if (!skipped.length) {
        showToast(`${verdict === "keep" ? "Kept" : "Undid"} ${subject(chosen)}.`, {
          action: { label: "Take back", run: () => void undoLast(decision) },
        });
        return;
      }
      putBack(skipped);
      const again = chosen.filter((each) => skipped.includes(each.hunk));
      showToast(`${count(skipped.length, "change")} left alone: ${reason}.`, {
        action: { label: "Undo anyway", run: () => void decide("undo", again, next, true) },
      });
    } catch (problem) {
      putBack(ids);
      showError(problem);
      await pending.reload();
    }
  }

  /** Take back one decision, by default the last; the server refuses after other operations. */
  async function undoLast(wanted?: Decision): Promise<void> {
    try {
      const { hunk, undos } = await inOrder(async () => {
        const decision = wanted ?? decisions.current.at(-1);
        const operations = decision?.operations ?? (await lastReviewDecision(project));
        const undos = await undoOperations(project, operations);
        decisions.current = decisions.current.filter((each) => each !== decision);
        return { hunk: decision?.hunk ?? null, undos };
      });
      setDecided(new Set());
      showToast("Taken back.", {
        action: { label: "Redo", run: () => void redo(hunk, undos) },
      });
      await pending.reload();
      if (hunk) setCurrent(() => hunk);
    } catch (problem) {
      const nothing = problem instanceof ApiError && problem.code === "nothing_to_undo";
      showError(nothing && !wanted ? new Error("There is no decision to take back.") : problem);
    }
  }

  async function redo(hunk: string | null, undos: number[]): Promise<void> {
    try {
      const operations = await inOrder(() => redoOperations(project, undos));
      decisions.current.push({ hunk, operations });
      await pending.reload();
    } catch (problem) {
      showError(problem);
    }
  }

  return {
    decided,
    decide: (...decision) => void decide(...decision),
    undoLast: () => void undoLast(),
  };
}

/** Name each hunk even if all are meant: only changes that the user has seen are decided. */
async function sendDecision(
  project: string,
  verdict: Verdict,
  hunks: string[],
  force: boolean,
): Promise<Outcome> {
  if (verdict === "keep")
    return { operations: (await api.keep(project, { hunks })).operations, skipped: [], reason: "" };
  const { results, conflicts } = await api.discard(project, { hunks, force });
  const operations = results.flatMap((each) => each.operation ?? []);
  if (conflicts.length)
    return { operations, skipped: conflicts, reason: "the same lines were changed since" };
  const [skip] = results.flatMap((each) => each.skipped);
  const reason = skip?.reason ?? "undone already";
  return { operations, skipped: operations.length ? [] : hunks, reason };
}

function subject(chosen: PendingHunk[]): string {
  const paths = new Set(chosen.map((each) => each.path));
  const where = paths.size === 1 ? ` in ${chosen[0]!.path}` : ` in ${count(paths.size, "file")}`;
  return (chosen.length === 1 ? "a change" : count(chosen.length, "change")) + where;
}
