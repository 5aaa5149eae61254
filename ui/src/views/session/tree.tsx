/** The tree of branches, beside the conversation. */

import type { Graph, Node } from "./graph";
import { Moment } from "../../parts/small";
import { to } from "../../router";
import { gist } from "../../words";

const ROW = 52;
const LANE = 16;
const LEFT = 14;

export function Tree(given: {
  graph: Graph;
  project: string;
  session: string;
  selected: string | null;
}) {
  const { graph } = given;
  const width = LEFT * 2 + Math.min(graph.lanes, 8) * LANE - LANE;
  return (
    <div class="tree">
      <svg
        class="tree-lines"
        width={width}
        height={graph.nodes.length * ROW}
        role="img"
        aria-label={`A tree of ${graph.nodes.length} messages on ${graph.lanes} branches`}
      >
        {[...graph.edges]
          .sort((a, b) => Number(a.active) - Number(b.active))
          .map((edge) => (
            <path
              key={`${edge.from.row} ${edge.to.row}`}
              class={edge.active ? "tree-edge is-active" : "tree-edge"}
              d={curve(edge.from, edge.to)}
            />
          ))}
        {graph.nodes.map((node) => (
          <circle
            key={node.entry.entry}
            class={nodeClass(node, graph)}
            cx={x(node.lane)}
            cy={y(node.row)}
            r={node.entry.entry === graph.here ? 5.5 : 4}
          />
        ))}
      </svg>
      <ol class="tree-rows" style={{ paddingLeft: `${width}px` }}>
        {graph.nodes.map((node) => (
          <li key={node.entry.entry} style={{ height: `${ROW}px` }}>
            <a
              class={node.active ? "tree-row is-active" : "tree-row"}
              aria-current={node.entry.entry === given.selected ? "true" : undefined}
              href={to("session", given.project, {
                id: given.session,
                entry: node.entry.entry,
                seq: node.entry.seq,
              })}
            >
              <span class="tree-text">{gist(node.entry.content, 80) || "A message"}</span>
              <span class="tree-facts">
                <Moment at={node.entry.created_at} />
                {node.entry.entry === graph.here && <span class="tag here">here</span>}
                {node.entry.label && <span class="tag">{node.entry.label}</span>}
              </span>
            </a>
          </li>
        ))}
      </ol>
    </div>
  );
}

function nodeClass(node: Node, graph: Graph): string {
  const here = node.entry.entry === graph.here ? " is-here" : "";
  return `tree-node${node.active ? " is-active" : ""}${here}`;
}

function x(lane: number): number {
  return LEFT + Math.min(lane, 7) * LANE;
}

function y(row: number): number {
  return row * ROW + 18;
}

function curve(from: { lane: number; row: number }, to: { lane: number; row: number }): string {
  const [ax, ay, bx, by] = [x(from.lane), y(from.row), x(to.lane), y(to.row)];
  if (ax === bx) return `M${ax} ${ay}V${by}`;
  // Sideways soon after the message that was gone back to, then down beside what was left.
  const turn = ay + 20;
  return `M${ax} ${ay}C${ax} ${turn} ${bx} ${ay + 6} ${bx} ${turn + 8}V${by}`;
}
