/** The tree of a session as a drawing: a row a message, a lane a branch. */

import { api, type Branch, type Entry } from "../../api";

export interface Node {
  entry: Entry;
  lane: number;
  row: number;
  /** Whether it is on the way to where the session stands. */
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
  /** The last message before where the session stands. */
  here: string | null;
}

export interface Loaded {
  branches: Branch[];
  messages: Entry[];
  /** The entries that branches spring from, and the leaf, by id. */
  points: Map<string, Entry>;
  leaf: string | null;
}

const MOST = 1000;

export async function loadGraph(project: string, session: string): Promise<Loaded> {
  const query = { type: ["user_input"], limit: MOST, include_compacted: true };
  const [tree, page] = await Promise.all([
    api.tree(project, session),
    api.entries(project, session, query),
  ]);
  const branches = tree.branches.filter((branch) => !branch.first.aside);
  const messages = page.entries.filter((entry) => !entry.aside);
  const known = [...messages, ...branches.flatMap((branch) => [branch.first, branch.last])];
  const points = new Map(known.map((entry) => [entry.entry, entry]));
  const wanted = [...branches.map((branch) => branch.springs_from), tree.leaf];
  const missing = wanted.filter((each): each is string => each !== null && !points.has(each));
  await Promise.all(
    missing.map(async (entry) => {
      const found = await api.conversation(project, session, { leaf: entry, limit: 1 });
      for (const each of found.entries) points.set(each.entry, each);
    }),
  );
  return { branches, messages, points, leaf: tree.leaf };
}

export function drawGraph({ branches, messages, points, leaf }: Loaded): Graph {
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
  return { nodes, edges, lanes: Math.max(1, lanes.size), here };
}

/** How far along each branch the way to the leaf goes. */
function activePath(
  bySeq: Map<number, Branch>,
  points: Map<string, Entry>,
  leaf: string | null,
): Map<number, number> {
  const found = new Map<number, number>();
  let at = leaf ? points.get(leaf) : undefined;
  while (at && !found.has(at.branch)) {
    found.set(at.branch, at.seq);
    const from = bySeq.get(at.branch)?.springs_from;
    at = from ? points.get(from) : undefined;
  }
  return found;
}

/** The message that a branch's first one follows: on the branch that it springs from. */
function parentOf(
  node: Node,
  bySeq: Map<number, Branch>,
  points: Map<string, Entry>,
  nodes: Node[],
): Node | undefined {
  let branch = bySeq.get(node.entry.branch);
  while (branch?.springs_from) {
    const point = points.get(branch.springs_from);
    if (!point) return undefined;
    const found = nodes.findLast(
      (each) => each.entry.branch === point.branch && each.entry.seq <= point.seq,
    );
    if (found) return found;
    branch = bySeq.get(point.branch);
  }
  return undefined;
}
