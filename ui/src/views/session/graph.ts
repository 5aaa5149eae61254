/** Lay out the tree of a session: one row per message, one lane per branch. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Branch, type Entry } from "../../api";
import { listen } from "../../live";

export interface Node {
  entry: Entry;
  lane: number;
  row: number;
  /** True if it is on the path from the root to the session's leaf. */
  active: boolean;
}

export interface Edge {
  from: { lane: number; row: number };
  to: { lane: number; row: number };
  active: boolean;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
  lanes: number;
  /** The last message on the path to the session's leaf. */
  here: string | null;
  /** True if the session returned there without restoring files. */
  filesSkipped: boolean;
}

interface Loaded {
  branches: Branch[];
  messages: Entry[];
  /** Entries that branches fork from, and the leaf, by id. */
  points: Map<string, Entry>;
  leaf: string | null;
  filesSkipped: boolean;
}

const PAGE_SIZE = 1000;
const RELOAD_DELAY_MS = 400;

/** Load the session's tree and follow it live; loaded messages are not requested again. */
export function useGraph(project: string, session: string) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const messages = useRef<Entry[]>([]);
  const latestRequest = useRef(0);

  const load = useCallback(
    async (known: Entry[]) => {
      const request = ++latestRequest.current;
      try {
        const graph = await loadGraph(project, session, known);
        if (request !== latestRequest.current) return;
        messages.current = graph.messages;
        setLoaded(graph);
        setProblem(null);
      } catch (failure) {
        if (request === latestRequest.current && !messages.current.length)
          setProblem(failure as Error);
      }
    },
    [project, session],
  );
  const reload = useCallback(() => load([]), [load]);

  useEffect(() => {
    messages.current = [];
    void reload();
    let timer: number | undefined;
    let loadAll = false;
    const stop = listen((event) => {
      const mine = event.project === project && (!event.session || event.session === session);
      const other = !mine || event.kind === "files" || event.kind === "job";
      if (event.kind !== "reconnected" && other) return;
      // New entries do not change earlier messages; after a reconnect, load everything.
      loadAll ||= event.kind === "reconnected";
      timer ??= window.setTimeout(() => {
        timer = undefined;
        void load(loadAll ? [] : messages.current);
        loadAll = false;
      }, RELOAD_DELAY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
      latestRequest.current++;
    };
  }, [load]);

  const drawn = useMemo(() => loaded && layOut(loaded), [loaded]);
  return { drawn, problem, reload };
}

async function loadGraph(project: string, session: string, known: Entry[]): Promise<Loaded> {
  const [tree, messages] = await Promise.all([
    api.tree(project, session),
    messagesAfter(project, session, known),
  ]);
  const branches = tree.branches.filter((branch) => !branch.first.off_path);
  const ends = branches.flatMap((branch) => [branch.first, branch.last]);
  const points = new Map([...messages, ...ends].map((entry) => [entry.entry, entry]));
  const wanted = [...branches.map((branch) => branch.parent_entry), tree.leaf];
  const missing = wanted.filter((each): each is string => each !== null && !points.has(each));
  await Promise.all(
    missing.map(async (entry) => {
      const page = await api.conversation(project, session, { leaf: entry, limit: 1 });
      for (const each of page.entries) points.set(each.entry, each);
    }),
  );
  return { branches, messages, points, leaf: tree.leaf, filesSkipped: tree.files_skipped };
}

/** Return the known messages and all later ones. */
async function messagesAfter(project: string, session: string, known: Entry[]): Promise<Entry[]> {
  const messages = [...known];
  let more = true;
  let since = known.at(-1)?.seq ?? 0;
  while (more) {
    const query = { type: ["user_input"], limit: PAGE_SIZE, since, include_compacted: true };
    const page = await api.entries(project, session, query);
    messages.push(...page.entries.filter((entry) => !entry.off_path));
    more = page.has_more && page.entries.length > 0;
    since = page.entries.at(-1)?.seq ?? since;
  }
  return messages;
}

function layOut({ branches, messages, points, leaf, filesSkipped }: Loaded): Graph {
  const bySeq = new Map(branches.map((branch) => [branch.first.seq, branch]));
  const active = activePath(bySeq, points, leaf);
  const lanes = new Map<number, number>();
  for (const message of messages)
    if (!lanes.has(message.branch)) lanes.set(message.branch, lanes.size);
  const nodes = messages.map((entry, row): Node => ({
    entry,
    row,
    lane: lanes.get(entry.branch)!,
    active: entry.seq <= (active.get(entry.branch) ?? -1),
  }));
  const edges: Edge[] = [];
  const last = new Map<number, Node>();
  for (const node of nodes) {
    const before = last.get(node.entry.branch) ?? parentOf(node, bySeq, points, nodes);
    if (before) edges.push({ from: before, to: node, active: node.active && before.active });
    last.set(node.entry.branch, node);
  }
  const here = nodes.filter((node) => node.active).at(-1)?.entry.entry ?? null;
  return { nodes, edges, lanes: Math.max(1, lanes.size), here, filesSkipped };
}

/** Return, by branch, the last `seq` that is on the path to the leaf. */
function activePath(
  bySeq: Map<number, Branch>,
  points: Map<string, Entry>,
  leaf: string | null,
): Map<number, number> {
  const lastSeqs = new Map<number, number>();
  let at = leaf ? points.get(leaf) : undefined;
  while (at && !lastSeqs.has(at.branch)) {
    lastSeqs.set(at.branch, at.seq);
    const from = bySeq.get(at.branch)?.parent_entry;
    at = from ? points.get(from) : undefined;
  }
  return lastSeqs;
}

/** Return the message before a branch's first one, on the branch it forks from. */
function parentOf(
  node: Node,
  bySeq: Map<number, Branch>,
  points: Map<string, Entry>,
  nodes: Node[],
): Node | undefined {
  let branch = bySeq.get(node.entry.branch);
  while (branch?.parent_entry) {
    const point = points.get(branch.parent_entry);
    if (!point) return undefined;
    const parent = nodes.findLast(
      (each) => each.entry.branch === point.branch && each.entry.seq <= point.seq,
    );
    if (parent) return parent;
    branch = bySeq.get(point.branch);
  }
  return undefined;
}
