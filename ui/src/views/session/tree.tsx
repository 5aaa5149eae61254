/** The tree of branches beside the conversation, as a virtual list. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import { firstLine } from "../../format";
import { TimeAgo } from "../../parts/small";
import { VirtualList, type Row, type VirtualHandle } from "../../parts/virtual";
import { urlFor } from "../../router";
import type { Edge, Graph, Node } from "./graph";

const ROW_PX = 52;
const LANE_PX = 16;
const LEFT_PX = 14;
const MIDDLE_PX = 18;
const MAX_LANES = 8;

interface TreeRow extends Row {
  node: Node;
  /** The edges that start, end in or cross this row. */
  edges: Edge[];
}

export function Tree(props: {
  graph: Graph;
  project: string;
  session: string;
  selected: string | null;
  onChoose: () => void;
}) {
  const { graph } = props;
  const list = useRef<VirtualHandle>(null);
  const width = LEFT_PX * 2 + (Math.min(graph.lanes, MAX_LANES) - 1) * LANE_PX;
  const rows = useMemo(() => rowsOf(graph), [graph]);
  const wanted = props.selected ?? graph.here;
  useEffect(() => {
    if (wanted) list.current?.show(wanted);
  }, [wanted, rows.length]);
  return (
    <div class="tree" style={{ flexBasis: `${rows.length * ROW_PX}px` }}>
      <VirtualList
        rows={rows}
        label={`A tree of ${rows.length} messages on ${graph.lanes} branches`}
        handle={list}
        role="list"
        render={({ key, node, edges }) => (
          <div key={key} class="tree-item" role="listitem" style={{ height: `${ROW_PX}px` }}>
            <svg class="tree-lines" width={width} height={ROW_PX} aria-hidden="true">
              {edges.map((edge) => (
                <path
                  key={`${edge.from.row} ${edge.to.row}`}
                  class={edge.active ? "tree-edge is-active" : "tree-edge"}
                  d={curve(edge.from, edge.to, node.row)}
                />
              ))}
              <circle
                class={nodeClass(node, graph)}
                cx={x(node.lane)}
                cy={MIDDLE_PX}
                r={node.entry.entry === graph.here ? 5.5 : 4}
              />
            </svg>
            <a
              class={node.active ? "tree-row is-active" : "tree-row"}
              aria-current={node.entry.entry === props.selected ? "true" : undefined}
              href={urlFor("session", props.project, {
                id: props.session,
                entry: node.entry.entry,
                seq: node.entry.seq,
              })}
              onClick={props.onChoose}
            >
              <span class="tree-text">{firstLine(node.entry.content, 80) || "A message"}</span>
              <span class="tree-facts">
                <TimeAgo at={node.entry.created_at} />
                {node.entry.entry === graph.here && <span class="tag here">here</span>}
                {node.entry.entry === graph.here && graph.filesSkipped && (
                  <span class="tag" title="The session returned here without restoring files">
                    files skipped
                  </span>
                )}
                {node.entry.label && <span class="tag">{node.entry.label}</span>}
              </span>
            </a>
          </div>
        )}
      />
    </div>
  );
}

function rowsOf(graph: Graph): TreeRow[] {
  const rows = graph.nodes.map((node): TreeRow => ({
    key: node.entry.entry,
    height: ROW_PX,
    node,
    edges: [],
  }));
  // Draw the path to the session's leaf over the other edges.
  for (const edge of [...graph.edges].sort((a, b) => Number(a.active) - Number(b.active)))
    for (let row = edge.from.row; row <= edge.to.row; row++) rows[row]!.edges.push(edge);
  return rows;
}

function nodeClass(node: Node, graph: Graph): string {
  const here = node.entry.entry === graph.here ? " is-here" : "";
  return `tree-node${node.active ? " is-active" : ""}${here}`;
}

function x(lane: number): number {
  return LEFT_PX + Math.min(lane, MAX_LANES - 1) * LANE_PX;
}

/** Return the SVG path of an edge, clipped to one row. */
function curve(from: Edge["from"], to: Edge["to"], row: number): string {
  const y = (each: number) => (each - row) * ROW_PX + MIDDLE_PX;
  const [ax, ay, bx, by] = [x(from.lane), y(from.row), x(to.lane), y(to.row)];
  if (ax === bx) return `M${ax} ${Math.max(ay, -ROW_PX)}V${Math.min(by, 2 * ROW_PX)}`;
  // Turn sideways just below the forked message, then run down beside the left branch.
  const turn = ay + 20;
  return `M${ax} ${ay}C${ax} ${turn} ${bx} ${ay + 6} ${bx} ${turn + 8}V${by}`;
}
