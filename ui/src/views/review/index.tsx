/** Review: the agents' pending changes, to keep or undo one by one. */

import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type PendingHunk, type Session } from "../../api";
import { useColumns } from "../../diff/columns";
import type { OpenGap } from "../../diff/lines";
import { openGap, type OpenedGaps } from "../../diff/model";
import { useKeys } from "../../keys";
import { COLUMNS_PREFERENCE, type Columns } from "../../parts/columns-choice";
import { narrow } from "../../parts/narrow";
import { ErrorBox, Skeleton } from "../../parts/small";
import { VirtualList, type VirtualHandle } from "../../parts/virtual";
import { usePreference } from "../../preferences";
import { useResource } from "../../resource";
import { route } from "../../router";
import { NoProject } from "../../shell/noproject";
import { projectId } from "../../state";
import { ReviewBar } from "./bar";
import { useContents, useFirstFilesLoaded } from "./contents";
import { useDecisions, type Verdict } from "./decisions";
import { ConfirmAll, Nothing } from "./dialogs";
import { FileList } from "./files";
import { groupPending, hunksOf, summary, type FilePart, type Grouping } from "./groups";
import { FileHead, RowView, type ReviewActions } from "./lines";
import { linesVersion, matchingLines } from "./matching-lines";
import { buildRows, FILE_PX, type ReviewRow } from "./rows";

const CHANGES = ["operation", "operation_changed", "files", "session_deleted"];
const MAX_ABOVE_PX = FILE_PX + 80;
const LINE_NUMBERS_PX = { unified: 124, split: 80 };

export default function Review() {
  const project = projectId.value;
  if (!project)
    return (
      <NoProject icon="review" title="Nothing to review yet">
        Run <code>mulligan up</code> in a project. The agents' changes appear here.
      </NoProject>
    );
  return <ReviewOf key={project} project={project} />;
}

function ReviewOf({ project }: { project: string }) {
  const { query } = route.value;
  const session = query.get("session");
  const turn = query.get("turn");
  const [by, chooseBy] = usePreference<Grouping>("review-by", "session");
  const [chosenColumns, chooseColumns] = usePreference<Columns>(COLUMNS_PREFERENCE, "unified");
  const [folded, setFolded] = useState<Set<string>>(new Set());
  const [opened, setOpened] = useState<OpenedGaps>(new Map());
  const [current, setCurrent] = useState<string | null>(query.get("hunk"));
  const [top, setTop] = useState<FilePart | null>(null);
  const [asking, setAsking] = useState<Verdict | null>(null);
  const list = useRef<VirtualHandle>(null);
  const lastIndex = useRef(0);
  const pane = useRef<HTMLDivElement>(null);

  const pending = useResource(
    () => api.pending(project, { session, turn }),
    [project, session, turn],
    (event) => event.project === project && CHANGES.includes(event.kind),
  );
  const { decided, decide, undoLast } = useDecisions(project, pending, setCurrent);
  const sessions = useSessions(project);
  const contents = useContents(project);
  const split = chosenColumns === "split" && !narrow.value;
  const columns = useColumns(
    pane,
    split ? LINE_NUMBERS_PX.split : LINE_NUMBERS_PX.unified,
    split ? 2 : 1,
  );

  const partCache = useRef(new Map<string, FilePart>()).current;
  const groups = useMemo(
    () => groupPending(pending.data?.files ?? [], by, sessions, decided, partCache),
    [pending.data, by, sessions, decided],
  );
  const parts = groups.flatMap((group) => group.parts);
  const hunks = useMemo(() => hunksOf(groups), [groups]);
  const modified = pending.data?.files.filter((file) => file.status === "modified") ?? null;
  const isReady = useFirstFilesLoaded(contents, modified && modified.map((file) => file.path));
  const linesOf = (part: FilePart) => matchingLines(part, contents.lines(part.file.path));
  const { rows, rowKeys, numbers } = useMemo(
    () => buildRows(groups, { columns, split }, linesOf, folded, opened),
    [groups, columns, split, folded, opened, linesVersion(parts.map(linesOf))],
  );

  // Stay at the same hunk while it exists, else at the one that took its index.
  const index = hunks.findIndex((hunk) => hunk.hunk === current);
  const at = index >= 0 ? index : Math.min(lastIndex.current, hunks.length - 1);
  lastIndex.current = Math.max(0, at);
  const hunk = hunks[at] ?? null;

  const show = useCallback(
    (wanted: PendingHunk | null) => {
      if (!wanted) return;
      setCurrent(wanted.hunk);
      const key = rowKeys.get(wanted.hunk);
      if (key) list.current?.show(key, { top: above(rows, key) });
    },
    [rows, rowKeys],
  );

  // The user may have stepped on before the first lines arrived and moved the rows.
  useLayoutEffect(() => {
    if (isReady && current) show(hunk);
  }, [isReady]);

  function step(by: number): void {
    if (hunks.length) show(hunks[(at + by + hunks.length) % hunks.length]!);
  }

  function stepFile(by: number): void {
    if (!hunk) return;
    const now = parts.findIndex((part) => part.hunks.includes(hunk));
    show(parts[(now + by + parts.length) % parts.length]!.hunks[0]!);
  }

  /** Decide on hunks, then select the next one that stays, else the previous one. */
  function decideOn(verdict: Verdict, chosen: PendingHunk[]): void {
    const ids = new Set(chosen.map((each) => each.hunk));
    const after = hunks.slice(at + 1).find((each) => !ids.has(each.hunk));
    const before = hunks.slice(0, at).findLast((each) => !ids.has(each.hunk));
    decide(verdict, chosen, (after ?? before)?.hunk ?? null);
  }

  const currentHunks = hunk ? [hunk] : [];
  const fileHunks = () => parts.find((part) => hunk && part.hunks.includes(hunk))?.hunks ?? [];
  useKeys("Review", [
    { key: "j", does: "next change", run: () => step(1) },
    { key: "k", does: "previous change", run: () => step(-1) },
    { key: "J", does: "next file", run: () => stepFile(1) },
    { key: "K", does: "previous file", run: () => stepFile(-1) },
    { key: "y", does: "keep the change", run: () => decideOn("keep", currentHunks) },
    { key: "n", does: "undo the change", run: () => decideOn("undo", currentHunks) },
    { key: "a", does: "keep the whole file", run: () => decideOn("keep", fileHunks()) },
    { key: "d", does: "undo the whole file", run: () => decideOn("undo", fileHunks()) },
    { key: "u", does: "take back the last decision", run: undoLast },
    { key: "s", does: "one column or two", run: () => chooseColumns(split ? "unified" : "split") },
  ]);

  const open: OpenGap = (gap, how) => setOpened((old) => openGap(old, gap, how));
  const act: ReviewActions = {
    keep: (chosen) => decideOn("keep", chosen),
    undo: (chosen) => decideOn("undo", chosen),
    choose: (wanted) => setCurrent(wanted.hunk),
    fold: (key) => setFolded((old) => toggled(old, key)),
    open,
    request: contents.request,
    version: contents.version,
    numbers,
    linesOf,
  };

  const sessionTitle = sessions.get(session ?? "")?.title || "One session";
  const isLoading = !pending.data && pending.loading;
  return (
    <div class="view review">
      <ReviewBar
        groups={groups}
        hunks={hunks}
        at={at}
        filter={session || turn ? `${sessionTitle}${turn ? `, turn ${turn}` : ""}` : null}
        by={by}
        columns={chosenColumns}
        chooseBy={chooseBy}
        chooseColumns={chooseColumns}
        step={step}
        ask={setAsking}
      />
      {pending.problem && (
        <ErrorBox problem={pending.problem} retry={() => void pending.reload()} />
      )}
      <div class="review-panes">
        <FileList groups={groups} current={hunk} show={show} loading={isLoading} />
        <div class="review-pane" ref={pane}>
          {isLoading || (pending.data && !isReady) ? (
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
                top && parts.includes(top) ? (
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
            decideOn(asking, hunks);
          }}
        />
      )}
    </div>
  );
}

/** Load the project's sessions, by id, for the titles of groups. */
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

function toggled(set: Set<string>, key: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** Return how much to show above a row: the file's head and a few lines. */
function above(rows: ReviewRow[], key: string): number {
  let height = 0;
  for (let at = rows.findIndex((row) => row.key === key) - 1; at >= 0; at--) {
    height += rows[at]!.height;
    if (rows[at]!.kind === "file" || height >= MAX_ABOVE_PX) break;
  }
  return Math.min(height, MAX_ABOVE_PX);
}
