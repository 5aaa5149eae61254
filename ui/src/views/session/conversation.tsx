/** The conversation as a timeline; opens at its end, or at the entry in the URL. */

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Entry, TurnStatus } from "../../api";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { MeasuredList, type MeasuredHandle } from "../../parts/measured";
import { EmptyState, ErrorBox, Skeleton } from "../../parts/small";
import { go, urlFor } from "../../router";
import { showError, showToast } from "../../state";
import type { useConversation } from "./conversation-pages";
import { EntryView, type EntryActions } from "./entries";
import { rowsOf, turnsByLastEntry, type EntryRow } from "./rows";

const GAP_PX = 12;

export function Conversation(props: {
  project: string;
  session: string;
  path: ReturnType<typeof useConversation>;
  turns: TurnStatus[];
  /** The entry in the URL. */
  target: string | null;
  act: Pick<EntryActions, "goTo" | "fork" | "label">;
  draft: string | null;
  dropDraft: () => void;
  /** True if the session is before its first message and has messages on other branches. */
  atRoot: boolean;
}) {
  const { project, session, path, target } = props;
  const { pages } = path;
  const entries = pages?.entries ?? NO_ENTRIES;
  const list = useRef<MeasuredHandle>(null);
  const unfolded = useRef(new Set<string>()).current;
  const { rows, results, rowOf } = useMemo(() => rowsOf(entries), [entries]);
  const turns = useMemo(() => turnsByLastEntry(entries, props.turns), [entries, props.turns]);
  const row = target && (rowOf.get(target) ?? target);

  const landed = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (!row || landed.current === row) return;
    // The target is a folded tool result, so unfold it.
    if (rowOf.has(target)) unfolded.add(row);
    if (list.current?.show(row, "middle")) landed.current = row;
  }, [row, rows]);
  useLayoutEffect(() => {
    if (target) return;
    landed.current = null;
    list.current?.toEnd();
  }, [target, pages === null, props.draft]);

  const move = (by: 1 | -1) => {
    const here = rows.findIndex((each) => each.key === list.current?.first());
    const wanted =
      by > 0 ? rows.slice(here + 1).find(isMessage) : rows.slice(0, here).findLast(isMessage);
    if (wanted) list.current?.show(wanted.key, "top");
  };
  useKeys("Session", [
    { key: "j", does: "next message", run: () => move(1) },
    { key: "k", does: "previous message", run: () => move(-1) },
    {
      key: "r",
      does: "review what is pending",
      run: () => go(urlFor("review", project, { session })),
    },
  ]);

  const act: EntryActions = { ...props.act, project, target: row, turns, results, unfolded };
  if (path.problem) return <ErrorBox problem={path.problem} retry={() => void path.reload()} />;
  if (!pages) return <Skeleton lines={7} height={72} />;
  if (!entries.length && props.draft === null)
    return props.atRoot ? (
      <EmptyState icon="session" title="Before the first message">
        <p>The session is back at its start. Its messages are under “Branches”.</p>
      </EmptyState>
    ) : (
      <EmptyState icon="session" title="No messages yet">
        <p>Messages and tool calls appear here while the agent works.</p>
      </EmptyState>
    );
  return (
    <>
      <MeasuredList
        rows={rows}
        label="Conversation"
        class="timeline"
        gap={GAP_PX}
        handle={list}
        onNearStart={() => void path.earlier()}
        onNearEnd={() => void path.later()}
        before={pages.earlier ? <Skeleton lines={1} height={72} /> : null}
        render={({ key, entry }) => <EntryView key={key} entry={entry} act={act} />}
        after={props.draft !== null && <Draft text={props.draft} close={props.dropDraft} />}
      />
      {pages.elsewhere ? (
        <div class="elsewhere" role="status">
          <Icon name="branch" />
          <span>This branch was left. The session continues on another one.</span>
          <button
            type="button"
            class="small strong"
            onClick={() => props.act.goTo(entries.at(-1)!)}
          >
            Return to this branch…
          </button>
          <a class="small" href={urlFor("session", project, { id: session })}>
            Show the current branch
          </a>
        </div>
      ) : (
        pages.later && (
          <div class="elsewhere">
            <span>There are later messages.</span>
            <a class="small strong" href={urlFor("session", project, { id: session })}>
              Go to the end
            </a>
          </div>
        )
      )}
    </>
  );
}

const NO_ENTRIES: Entry[] = [];

function isMessage({ entry }: EntryRow): boolean {
  return entry.type === "user_input";
}

function Draft({ text, close }: { text: string; close: () => void }) {
  const copy = () =>
    navigator.clipboard.writeText(text).then(() => showToast("Copied."), showError);
  return (
    <div class="draft">
      <p class="faint">
        The session is back before this message. Copy it to send it again, or write another:
      </p>
      <pre class="code">{text}</pre>
      <p>
        <button type="button" class="small" onClick={() => void copy()}>
          Copy
        </button>{" "}
        <button type="button" class="small" onClick={close}>
          Hide
        </button>
      </p>
    </div>
  );
}
