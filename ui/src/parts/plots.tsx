/** Small SVG charts. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatNumber } from "../format";

export interface Series {
  name: string;
  values: number[];
}

const HEIGHT_PX = 180;
const BOTTOM_PX = 22;
const LEFT_PX = 34;
const SHADES = 6;

/** Stacked bars over time. */
export function Bars({
  labels,
  series,
  title,
}: {
  labels: string[];
  series: Series[];
  title: string;
}) {
  const [box, width] = useWidth();
  const sums = labels.map((_, at) => series.reduce((sum, each) => sum + each.values[at]!, 0));
  const top = roundUp(Math.max(1, ...sums));
  const step = (width - LEFT_PX) / Math.max(1, labels.length);
  const bar = Math.max(2, Math.min(44, step * 0.64));
  const y = (value: number) => (HEIGHT_PX - BOTTOM_PX - 6) * (1 - value / top) + 6;
  const every = Math.max(
    1,
    Math.ceil(labels.length / Math.max(1, Math.floor((width - LEFT_PX) / 74))),
  );
  return (
    <div ref={box} class="plot">
      <svg
        width={width}
        height={HEIGHT_PX}
        role="img"
        aria-label={`${title}: ${labels.map((label, at) => `${label} ${sums[at]}`).join(", ")}`}
      >
        {[0, top / 2, top].map((value) => (
          <g key={value}>
            <line class="plot-grid" x1={LEFT_PX} x2={width} y1={y(value)} y2={y(value)} />
            <text class="plot-text" x={LEFT_PX - 6} y={y(value) + 4} text-anchor="end">
              {shortNumber(value)}
            </text>
          </g>
        ))}
        {labels.map((label, at) => {
          let below = 0;
          const x = LEFT_PX + step * at + (step - bar) / 2;
          return (
            <g key={label}>
              {series.map((each, number) => {
                const value = each.values[at]!;
                if (!value) return null;
                const rect = (
                  <rect
                    key={each.name}
                    class={`shade shade-${number % SHADES}`}
                    x={x}
                    width={bar}
                    y={y(below + value)}
                    height={Math.max(1, y(below) - y(below + value) - 1)}
                    rx="2"
                  >
                    <title>
                      {label}, {each.name}: {value}
                    </title>
                  </rect>
                );
                below += value;
                return rect;
              })}
              {at % every === 0 && (
                <text class="plot-text" x={x + bar / 2} y={HEIGHT_PX - 5} text-anchor="middle">
                  {label}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <Legend names={series.map((each) => each.name)} />
    </div>
  );
}

/** One quantity over time, as an area chart. */
export function Area({
  points,
  title,
  shown,
}: {
  points: { at: string; value: number }[];
  title: string;
  shown: (value: number) => string;
}) {
  const [box, width] = useWidth();
  if (points.length < 2)
    return <p class="faint">One value so far: {points[0] ? shown(points[0].value) : "none"}.</p>;
  const times = points.map((each) => Date.parse(each.at));
  const [first, last] = [times[0]!, times.at(-1)!];
  const top = Math.max(1, ...points.map((each) => each.value)) * 1.1;
  const left = 64;
  const x = (time: number) =>
    left + ((width - left - 4) * (time - first)) / Math.max(1, last - first);
  const y = (value: number) => (HEIGHT_PX - BOTTOM_PX - 6) * (1 - value / top) + 6;
  const line = points
    .map((each, at) => `${at ? "L" : "M"}${x(times[at]!).toFixed(1)} ${y(each.value).toFixed(1)}`)
    .join("");
  return (
    <div ref={box} class="plot">
      <svg
        width={width}
        height={HEIGHT_PX}
        role="img"
        aria-label={`${title}: from ${shown(points[0]!.value)} to ${shown(points.at(-1)!.value)}`}
      >
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line class="plot-grid" x1={left} x2={width} y1={y(top * part)} y2={y(top * part)} />
            <text class="plot-text" x={left - 6} y={y(top * part) + 4} text-anchor="end">
              {shown(top * part)}
            </text>
          </g>
        ))}
        <path class="plot-area" d={`${line}L${x(last)} ${y(0)}L${x(first)} ${y(0)}Z`} />
        <path class="plot-line" d={line} />
      </svg>
    </div>
  );
}

export function Legend({ names }: { names: string[] }) {
  if (names.length < 2) return null;
  return (
    <ul class="legend">
      {names.map((name, at) => (
        <li key={name}>
          <Swatch shade={at} />
          {name}
        </li>
      ))}
    </ul>
  );
}

/** One bar divided into parts, with a legend; empty parts are not drawn. */
export function BreakdownBar({
  parts,
  title,
  shown,
}: {
  parts: { name: string; value: number }[];
  title: string;
  shown: (value: number) => string;
}) {
  const all = parts.reduce((sum, each) => sum + each.value, 0);
  let before = 0;
  const drawn = parts.map(({ name, value }, at) => {
    const part = { name, value, at, from: (100 * before) / all };
    before += value;
    return part;
  });
  const words = parts.map(({ name, value }) => `${name} ${shown(value)}`).join(", ");
  return (
    <div class="parts">
      <svg class="parts-bar" width="100%" height="14" role="img" aria-label={`${title}: ${words}`}>
        {drawn.map(
          ({ name, value, at, from }) =>
            value > 0 && (
              <rect
                key={name}
                class={`shade shade-${at % SHADES}`}
                x={`${from}%`}
                width={`${(100 * value) / all}%`}
                height="14"
              >
                <title>
                  {name}: {shown(value)}
                </title>
              </rect>
            ),
        )}
      </svg>
      <dl class="parts-legend">
        {drawn.map(({ name, value, at }) => (
          <div key={name}>
            <Swatch shade={at} />
            <dt>{name}</dt>
            <dd>{shown(value)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Swatch({ shade }: { shade: number }) {
  return (
    <svg width="10" height="10" aria-hidden="true">
      <rect class={`shade shade-${shade % SHADES}`} width="10" height="10" rx="3" />
    </svg>
  );
}

/** A share of a whole, as a bar in a table row. */
export function ShareBar({ part, of }: { part: number; of: number }) {
  const width = of ? Math.max(part > 0 ? 2 : 0, (100 * part) / of) : 0;
  return (
    <svg class="share" width="100%" height="8" aria-hidden="true">
      <rect class="share-all" width="100%" height="8" rx="4" />
      <rect class="shade shade-0" width={`${width}%`} height="8" rx="4" />
    </svg>
  );
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    setWidth(element.clientWidth);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [box, width] as const;
}

/** Round up to a number that makes the grid labels easy to read. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 2, 4, 5, 10].map((each) => each * power).find((each) => each >= value && each / 2 >= 1) ?? 2
  );
}

function shortNumber(value: number): string {
  return value >= 1000 ? `${formatNumber(value / 1000)}k` : formatNumber(value);
}
