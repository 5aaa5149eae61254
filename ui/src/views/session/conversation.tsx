/** The conversation as a timeline. It is read from its end on, or from a moment in it. */

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Entry, TurnStatus } from "../../api";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { MeasuredList, type MeasuredHandle } from "../../parts/measured";
import { EmptyState, Skeleton, ErrorBox } from "../../parts/small";
import { go, urlFor } from "../../router";
import { showError, showToast } from "../../state";
import { EntryView, type EntryActions } from "./entries";
import type { useConversation } from "./conversation-pages";
import { rowsOf, turnsByLastEntry, type EntryRow } from "./rows";

const GAP_PX = 12;

export function Conversation(props: {
  project: string;
  session: string;
  path: ReturnType<typeof useConversation>;
  turns: TurnStatus[];
  /** The entry that was asked for. */
  target: string | null;
  act: Pick<EntryActions, "goTo" | "fork" | "label">;
  draft: string | null;
  dropDraft: () => void;
  /** Something was said, on branches that were left: the session stands before all of it. */
  atRoot: boolean;
}) {
  const { project, session, path, target } = props;
  const { shown } = path;
  const entries = shown?.entries ?? NO_ENTRIES;
  const list = useRef<MeasuredHandle>(null);
  const unfolded = useRef(new Set<string>()).current;
  const { rows, results, rowOf: within } = useMemo(() => rowsOf(entries), [entries]);
  const turns = useMemo(() => turnsByLastEntry(entries, props.turns), [entries, props.turns]);
  const row = target && (within.get(target) ?? target);

  const landed = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (!row || landed.current === row) return;
    // What came of a call is folded away; whoever was led to it wants to see it.
    if (within.has(target)) unfolded.add(row);
    if (list.current?.show(row, "middle")) landed.current = row;
  }, [row, rows]);
  useLayoutEffect(() => {
    if (target) return;
    landed.current = null;
    list.current?.toEnd();
  }, [target, shown === null, props.draft]);

  const move = (by: 1 | -1) => {
    const here = rows.findIndex((each) => each.key === list.current?.first());
    const wanted =
      by > 0 ? rows.slice(here + 1).find(isMessage) : rows.slice(0, here).findLast(isMessage);
    if (wanted) list.current?.show(wanted.key, "top");
  };
  useKeys("Session", [
    { key: "j", does: "next message", run: () => move(1) },
    { key: "k", does: "previous message", run: () => move(-1) },
    { key: "r", does: "review what is pending", run: () => go(urlFor("review", project, { session })) },
  ]);

  const act: EntryActions = { ...props.act, project, target: row, turns, results, unfolded };
  if (path.problem)
    return <ErrorBox problem={path.problem} retry={() => void path.reload()} />;
  if (!shown) return <Skeleton lines={7} height={72} />;
  if (!entries.length && props.draft === null)
    return props.atRoot ? (
      <EmptyState icon="session" title="Before the first message">
        <p>The session stands at its root. What was said is on the branches beside.</p>
      </EmptyState>
    ) : (
      <EmptyState icon="session" title="Nothing was said yet">
        <p>What the agent says and does appears here as it happens.</p>
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
        before={shown.earlier ? <Skeleton lines={1} height={72} /> : null}
        render={({ key, entry }) => <EntryView key={key} entry={entry} act={act} />}
        after={props.draft !== null && <Draft text={props.draft} close={props.dropDraft} />}
      />
      {shown.elsewhere ? (
        <div class="elsewhere" role="status">
          <Icon name="branch" />
          <span>This branch was left. The session stands elsewhere.</span>
          <button
            type="button"
            class="small strong"
            onClick={() => props.act.goTo(entries.at(-1)!)}
          >
            Go to its end…
          </button>
          <a class="small" href={urlFor("session", project, { id: session })}>
            Back to where it stands
          </a>
        </div>
      ) : (
        shown.later && (
          <div class="elsewhere">
            <span>The session goes on.</span>
            <a class="small strong" href={urlFor("session", project, { id: session })}>
              To its end
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
  const copy = () => navigator.clipboard.writeText(text).then(() => showToast("Copied."), showError);
  return (
    <div class="draft">
      <p class="faint">You are back before this message. Say it again, or something better:</p>
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
