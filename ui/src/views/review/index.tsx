/** Review: what agents did and nobody has decided on yet, change by change. */

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, ApiError, type PendingHunk, type Session } from "../../api";
import { useColumns } from "../../diff/columns";
import type { OpenGap } from "../../diff/lines";
import { openGap, type OpenedGaps } from "../../diff/model";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { narrow } from "../../parts/narrow";
import { Counts, Segments, Skeleton, ErrorBox } from "../../parts/small";
import { VirtualList, type VirtualHandle } from "../../parts/virtual";
import { useResource } from "../../resource";
import { route, setQuery } from "../../router";
import { NoProject } from "../../shell/noproject";
import { showError, projectId, showToast, savePreference, loadPreference } from "../../state";
import { redoOperations, lastReviewDecision, undoOperations } from "../../undo";
import { count } from "../../format";
import { useContents, useFirstFilesLoaded } from "./contents";
import { FileList } from "./files";
import { ConfirmAll, Nothing } from "./dialogs";
import { matchingLines, linesVersion } from "./matching-lines";
import { groupPending, hunksOf, summary, type Grouping, type FilePart } from "./groups";
import { FileHead, RowView } from "./lines";
import { buildRows, FILE_PX, type ReviewRow } from "./rows";

const CHANGES = ["operation", "operation_changed", "files", "session_deleted"];
const MAX_ABOVE_PX = FILE_PX + 80;
const LINE_NUMBERS_PX = { unified: 124, split: 80 };

export default function Review() {
  const project = projectId.value;
  if (!project)
    return (
      <NoProject icon="review" title="Nothing to review yet">
        Run <code>mulligan up</code> in a project; what agents do there appears here.
      </NoProject>
    );
  return <ReviewOf key={project} project={project} />;
}

function ReviewOf({ project }: { project: string }) {
  const { query } = route.value;
  const session = query.get("session");
  const turn = query.get("turn");
  const [by, setBy] = useState<Grouping>((loadPreference("review-by") as Grouping | null) ?? "session");
  const [side, setSide] = useState(loadPreference("review-side") ?? "unified");
  const [decided, setDecided] = useState<Set<string>>(new Set());
  const [folded, setFolded] = useState<Set<string>>(new Set());
  const [opened, setOpened] = useState<OpenedGaps>(new Map());
  const [current, setCurrent] = useState<string | null>(query.get("hunk"));
  const [top, setTop] = useState<FilePart | null>(null);
  const [asking, setAsking] = useState<"keep" | "undo" | null>(null);
  const list = useRef<VirtualHandle>(null);
  const lastIndex = useRef(0);
  const decisions = useRef<Decision[]>([]);
  const queue = useRef<Promise<unknown>>(Promise.resolve());
  const pane = useRef<HTMLDivElement>(null);

  const pending = useResource(
    () => api.pending(project, { session, turn }),
    [project, session, turn],
    (event) => event.project === project && CHANGES.includes(event.kind),
  );
  const sessions = useSessions(project);
  const contents = useContents(project);
  const split = side === "split" && !narrow.value;
  const columns = useColumns(pane, split ? LINE_NUMBERS_PX.split : LINE_NUMBERS_PX.unified, split ? 2 : 1);

  const partCache = useRef(new Map<string, FilePart>()).current;
  const groups = useMemo(
    () => groupPending(pending.data?.files ?? [], by, sessions, decided, partCache),
    [pending.data, by, sessions, decided],
  );
  const hunks = useMemo(() => hunksOf(groups), [groups]);
  const modified = pending.data?.files.filter((file) => file.status === "modified") ?? null;
  const isReady = useFirstFilesLoaded(contents, modified && modified.map((file) => file.path));
  const linesOf = (part: FilePart) => matchingLines(part, contents.lines(part.file.path));
  const version = groups.flatMap((group) => group.parts.map(linesOf));
  const { rows, rowKeys: places, numbers } = useMemo(
    () => buildRows(groups, { columns, split }, linesOf, folded, opened),
    [groups, columns, split, folded, opened, linesVersion(version)],
  );

  // The reader's place: the same change for as long as it is there, else the one that took its
  // place in the order.
  const index = hunks.findIndex((hunk) => hunk.hunk === current);
  const at = index >= 0 ? index : Math.min(lastIndex.current, hunks.length - 1);
  lastIndex.current = Math.max(0, at);
  const hunk = hunks[at] ?? null;

  // Once the server no longer lists what was decided, it need not be remembered.
  useEffect(() => {
    if (!pending.data || !decided.size) return;
    const listed = new Set(pending.data.files.flatMap((file) => file.hunks.map((each) => each.hunk)));
    const still = [...decided].filter((each) => listed.has(each));
    if (still.length !== decided.size) setDecided(new Set(still));
  }, [pending.data]);

  const show = useCallback(
    (wanted: PendingHunk | null) => {
      if (!wanted) return;
      setCurrent(wanted.hunk);
      const key = places.get(wanted.hunk);
      if (key) list.current?.show(key, { top: above(rows, key) });
    },
    [rows, places],
  );

  // Who was faster than the lines finds the list where they have gone to meanwhile.
  useLayoutEffect(() => {
    if (isReady && current) show(hunk);
  }, [isReady]);

  function step(by: number): void {
    if (hunks.length) show(hunks[(at + by + hunks.length) % hunks.length]!);
  }

  function stepFile(by: number): void {
    if (!hunk) return;
    const parts = groups.flatMap((group) => group.parts);
    const now = parts.findIndex((part) => part.hunks.includes(hunk));
    show(parts[(now + by + parts.length) % parts.length]!.hunks[0]!);
  }

  /** Keys come faster than answers: what is decided is done in the order of deciding. */
  function inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.current.then(work, work);
    queue.current = done;
    return done;
  }

  async function decide(
    what: "keep" | "undo",
    chosen: PendingHunk[],
    force = false,
  ): Promise<void> {
    if (!chosen.length) return;
    const ids = chosen.map((each) => each.hunk);
    const after = hunks.slice(at + 1).find((each) => !ids.includes(each.hunk));
    const before = hunks.slice(0, at).findLast((each) => !ids.includes(each.hunk));
    const next = (after ?? before)?.hunk ?? null;
    setDecided((old) => new Set([...old, ...ids]));
    setCurrent(next);
    const stay = (left: string[]) => {
      setDecided((old) => new Set([...old].filter((each) => !left.includes(each))));
      setCurrent((now) => (now === next ? left[0]! : now));
    };
    try {
      const { left, reason, decision } = await inOrder(async () => {
        const { operations, ...rest } = await sendDecision(project, what, ids, force);
        const decision = { hunk: ids[0]!, operations };
        if (operations.length) decisions.current.push(decision);
        return { ...rest, decision };
      });
      if (left.length) {
        stay(left);
        showToast(
          `${count(left.length, "change")} left alone: ${reason}.`,
          {
            action: {
              label: "Undo anyway",
              run: () =>
                void decide(
                  "undo",
                  chosen.filter((each) => left.includes(each.hunk)),
                  true,
                ),
            },
          },
        );
      } else {
        showToast(`${what === "keep" ? "Kept" : "Undid"} ${subject(chosen)}.`, {
          action: { label: "Take back", run: () => void undoLast(decision) },
        });
      }
    } catch (problem) {
      stay(ids);
      showError(problem);
      await pending.reload();
    }
  }

  /** Take back one decision, by default the last; the server refuses where another came since. */
  async function undoLast(wanted?: Decision): Promise<void> {
    try {
      const { hunk, undos } = await inOrder(async () => {
        const decision = wanted ?? decisions.current.at(-1);
        const undos = await undoOperations(project, decision?.operations ?? (await lastReviewDecision(project)));
        decisions.current = decisions.current.filter((each) => each !== decision);
        return { hunk: decision?.hunk ?? null, undos };
      });
      setDecided(new Set());
      showToast("Taken back.", { action: { label: "Redo", run: () => void decideAgain(hunk, undos) } });
      await pending.reload();
      if (hunk) setCurrent(hunk);
    } catch (problem) {
      const nothing = problem instanceof ApiError && problem.code === "nothing_to_undo";
      showError(nothing && !wanted ? new Error("There is nothing to take back.") : problem);
    }
  }

  async function decideAgain(hunk: string | null, undos: number[]): Promise<void> {
    try {
      const operations = await inOrder(() => redoOperations(project, undos));
      decisions.current.push({ hunk, operations });
      await pending.reload();
    } catch (problem) {
      showError(problem);
    }
  }

  const ofFile = () => (hunk ? partOf(hunk) : null)?.hunks ?? [];
  const partOf = (wanted: PendingHunk) =>
    groups.flatMap((group) => group.parts).find((part) => part.hunks.includes(wanted)) ?? null;

  useKeys("Review", [
    { key: "j", does: "next change", run: () => step(1) },
    { key: "k", does: "previous change", run: () => step(-1) },
    { key: "J", does: "next file", run: () => stepFile(1) },
    { key: "K", does: "previous file", run: () => stepFile(-1) },
    { key: "y", does: "keep the change", run: () => void (hunk && decide("keep", [hunk])) },
    { key: "n", does: "undo the change", run: () => void (hunk && decide("undo", [hunk])) },
    { key: "a", does: "keep the whole file", run: () => void decide("keep", ofFile()) },
    { key: "d", does: "undo the whole file", run: () => void decide("undo", ofFile()) },
    { key: "u", does: "take back the last decision", run: () => void undoLast() },
    { key: "s", does: "one column or two", run: () => chooseSide(split ? "unified" : "split") },
  ]);

  function chooseSide(wanted: string): void {
    setSide(wanted);
    savePreference("review-side", wanted);
  }

  function chooseBy(wanted: Grouping): void {
    setBy(wanted);
    savePreference("review-by", wanted);
  }

  const fold = (key: string) => setFolded((old) => toggled(old, key));
  const open: OpenGap = (gap, how) => setOpened((old) => openGap(old, gap, how));
  const act = {
    keep: (chosen: PendingHunk[]) => void decide("keep", chosen),
    undo: (chosen: PendingHunk[]) => void decide("undo", chosen),
    choose: (wanted: PendingHunk) => setCurrent(wanted.hunk),
    fold,
    open,
    request: contents.request,
    version: contents.version,
    numbers,
    linesOf,
  };

  const totals = hunks.reduce(
    (sum, each) => ({
      additions: sum.additions + each.additions,
      deletions: sum.deletions + each.deletions,
    }),
    { additions: 0, deletions: 0 },
  );

  return (
    <div class="view review">
      <header class="bar">
        <h1>Review</h1>
        {hunks.length > 0 && (
          <span class="bar-note">
            {summary(groups)} <Counts {...totals} />
          </span>
        )}
        {(session || turn) && (
          <button
            type="button"
            class="chip"
            onClick={() => setQuery({ session: null, turn: null })}
          >
            {sessions.get(session ?? "")?.title || "One session"}
            {turn ? `, turn ${turn}` : ""} <Icon name="close" size={12} />
            <span class="unseen">Show everything that is pending</span>
          </button>
        )}
        <span class="bar-space" />
        <Segments
          label="Grouped by"
          value={by}
          choose={chooseBy}
          options={[
            { value: "session", label: "Session" },
            { value: "turn", label: "Turn" },
            { value: "file", label: "File" },
          ]}
        />
        {!narrow.value && (
          <Segments
            label="Columns"
            value={side as "unified" | "split"}
            choose={chooseSide}
            options={[
              { value: "unified", label: "One column", icon: "unified" },
              { value: "split", label: "Side by side", icon: "split" },
            ]}
          />
        )}
        <div class="stepper" role="group" aria-label="Changes">
          <button
            type="button"
            aria-label="Previous change"
            title="Previous change (k)"
            onClick={() => step(-1)}
            disabled={!hunks.length}
          >
            <Icon name="up" />
          </button>
          <span class="stepper-place" aria-live="polite">
            Change {hunks.length ? at + 1 : 0} of {hunks.length}
          </span>
          <button
            type="button"
            aria-label="Next change"
            title="Next change (j)"
            onClick={() => step(1)}
            disabled={!hunks.length}
          >
            <Icon name="down" />
          </button>
        </div>
        <button
          type="button"
          class="button"
          disabled={!hunks.length}
          onClick={() => setAsking("undo")}
        >
          Undo all
        </button>
        <button
          type="button"
          class="button primary"
          disabled={!hunks.length}
          onClick={() => setAsking("keep")}
        >
          Keep all
        </button>
      </header>
      {pending.problem && <ErrorBox problem={pending.problem} retry={() => void pending.reload()} />}
      <div class="review-panes">
        <FileList
          groups={groups}
          current={hunk}
          show={(wanted) => show(wanted)}
          loading={!pending.data && pending.loading}
        />
        <div class="review-pane" ref={pane}>
          {(!pending.data && pending.loading) || (pending.data && !isReady) ? (
            <Skeleton lines={14} height={26} />
          ) : !hunks.length ? (
            <Nothing />
          ) : (
            <VirtualList<ReviewRow>
              rows={rows}
              label="Changes"
              class="diff"
              handle={list}
              topInset={FILE_PX}
              onFirstRow={(row) => setTop("part" in row ? row.part : null)}
              overlay={
                top && parts(groups).includes(top) ? (
                  <div class="diff-sticky">
                    <FileHead part={top} folded={folded.has(top.key)} act={act} />
                  </div>
                ) : null
              }
              render={(row) => <RowView key={row.key} row={row} current={hunk} act={act} />}
            />
          )}
        </div>
      </div>
      {asking && (
        <ConfirmAll
          what={asking}
          hunks={hunks}
          files={summary(groups)}
          close={() => setAsking(null)}
          run={() => {
            setAsking(null);
            void decide(asking, hunks);
          }}
        />
      )}
    </div>
  );
}

interface Decision {
  hunk: string | null;
  operations: number[];
}

/** Only what was seen is decided: each change is named, even where it is all of them. */
async function sendDecision(
  project: string,
  what: "keep" | "undo",
  hunks: string[],
  force: boolean,
): Promise<{ operations: number[]; left: string[]; reason: string }> {
  if (what === "keep")
    return { operations: (await api.keep(project, { hunks })).operations, left: [], reason: "" };
  const { results, conflicts } = await api.discard(project, { hunks, force });
  const operations = results.flatMap((each) => each.operation ?? []);
  if (conflicts.length)
    return { operations, left: conflicts, reason: "the same lines were changed since" };
  const [skip] = results.flatMap((each) => each.skipped);
  const reason = skip?.reason ?? "undone already";
  return { operations, left: operations.length ? [] : hunks, reason };
}

function subject(chosen: PendingHunk[]): string {
  const paths = new Set(chosen.map((each) => each.path));
  const where = paths.size === 1 ? ` in ${chosen[0]!.path}` : ` in ${count(paths.size, "file")}`;
  return (chosen.length === 1 ? "a change" : count(chosen.length, "change")) + where;
}

/** The sessions that what is pending may belong to, by id. */
function useSessions(project: string): Map<string, Session> {
  const list = useResource(
    () => api.sessions(project, { limit: 200 }),
    [project],
    (event) => event.project === project && event.kind.startsWith("session"),
  );
  return useMemo(
    () => new Map((list.data?.sessions ?? []).map((each) => [each.session, each])),
    [list.data],
  );
}

function parts(groups: { parts: FilePart[] }[]): FilePart[] {
  return groups.flatMap((group) => group.parts);
}

function toggled(set: Set<string>, key: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** How much of what is before a row is shown with it: its file's head, and a few lines. */
function above(rows: ReviewRow[], key: string): number {
  let height = 0;
  for (let at = rows.findIndex((row) => row.key === key) - 1; at >= 0; at--) {
    height += rows[at]!.height;
    if (rows[at]!.kind === "file" || height >= MAX_ABOVE_PX) break;
  }
  return Math.min(height, MAX_ABOVE_PX);
}
