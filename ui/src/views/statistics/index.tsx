/** Statistics: the agents' tool calls, their success and duration, and the project's size. */

import { useMemo } from "preact/hooks";
import { api, type Stats, type StatsKeyed, type StatsRow } from "../../api";
import { count, formatDuration, formatNumber, formatSize } from "../../format";
import { Area, Bars, ShareBar, type Series } from "../../parts/plots";
import { Select } from "../../parts/select";
import { EmptyState, ErrorBox, Segments, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { route, setQuery, urlFor } from "../../router";
import { project as chosenProject, projects } from "../../state";

const RANGES = [
  { value: "7", label: "Week" },
  { value: "30", label: "Month" },
  { value: "365", label: "Year" },
  { value: "all", label: "All" },
];
const DAY_MS = 86_400_000;

export default function Statistics() {
  const { query } = route.value;
  const days = query.get("days") ?? "30";
  const project = query.get("in") ?? "";
  const since =
    days === "all"
      ? ""
      : new Date(
          Math.floor(Date.now() / DAY_MS) * DAY_MS - (Number(days) - 1) * DAY_MS,
        ).toISOString();
  const bucket = days === "365" || days === "all" ? "month" : "day";
  const stats = useResource(
    async () => {
      const which = { since, project };
      const [time, tools, agents] = await Promise.all([
        api.stats({ ...which, by: [bucket, "agent"] }),
        api.stats({ ...which, by: ["tool"] }),
        api.stats({ ...which, by: ["agent"] }),
      ]);
      return { time, tools, agents };
    },
    [since, project, bucket],
    (event) => event.kind === "entry" || event.kind === "entry_changed",
  );
  const { data } = stats;
  return (
    <div class="view">
      <header class="bar">
        <h1>Statistics</h1>
        <span class="bar-space" />
        <Select
          label="Project"
          value={project}
          choose={(value) => setQuery({ in: value })}
          options={[
            ["", "All projects"],
            ...(projects.value ?? []).map((each): [string, string] => [each.project, each.name]),
          ]}
        />
        <Segments
          label="Range"
          value={days}
          choose={(value) => setQuery({ days: value })}
          options={RANGES}
        />
      </header>
      <div class="page-scroll" tabIndex={0} role="group" aria-label="Statistics">
        <div class="column wide">
          {stats.problem && <ErrorBox problem={stats.problem} retry={() => void stats.reload()} />}
          {!data ? (
            <Skeleton lines={4} height={160} />
          ) : !data.tools.total.calls ? (
            <EmptyState icon="statistics" title="No tool calls in this period">
              <p>
                This view counts the agents' tool calls, how long they take and how often they
                succeed. It does not read their content. Choose a longer range above.
              </p>
            </EmptyState>
          ) : (
            <>
              <Tiles total={data.tools.total} tools={data.tools} agents={data.agents} />
              <section class="panel">
                <h2>Calls {bucket === "day" ? "a day" : "a month"}, by agent</h2>
                <OverTime stats={data.time} bucket={bucket} since={since} />
              </section>
              <section class="panel">
                <h2>Tools</h2>
                <Table name="tool" stats={data.tools} />
              </section>
              <section class="panel">
                <h2>Agents</h2>
                <Table name="agent" stats={data.agents} />
              </section>
            </>
          )}
          <StorePanel project={project || chosenProject.value?.project || ""} />
        </div>
      </div>
    </div>
  );
}

function Tiles({ total, tools, agents }: { total: StatsRow; tools: Stats; agents: Stats }) {
  const facts: [string, string][] = [
    [formatNumber(total.calls), "tool calls"],
    [rate(total.success_rate), "succeeded"],
    [total.average_ms === null ? "—" : formatDuration(total.average_ms), "on average"],
    [total.p95_ms === null ? "—" : formatDuration(total.p95_ms), "95th percentile"],
    [String(tools.rows.length), tools.rows.length === 1 ? "tool" : "tools"],
    [String(agents.rows.length), agents.rows.length === 1 ? "agent" : "agents"],
  ];
  return (
    <dl class="tiles">
      {facts.map(([value, name]) => (
        <div key={name} class="tile">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function OverTime({
  stats,
  bucket,
  since,
}: {
  stats: Stats;
  bucket: "day" | "month";
  since: string;
}) {
  const { labels, series } = useMemo(
    () => stacked(stats.rows, bucket, since),
    [stats, bucket, since],
  );
  return <Bars title="Calls over time" labels={labels} series={series} />;
}

function stacked(
  rows: StatsKeyed[],
  bucket: "day" | "month",
  since: string,
): { labels: string[]; series: Series[] } {
  const present = [...new Set(rows.map((row) => row[bucket]!))].sort();
  const keys = bucket === "day" && since ? daysFrom(since) : present;
  const agents = [...new Set(rows.map((row) => row.agent!))];
  const calls = (agent: string) =>
    rows.reduce((sum, row) => sum + (row.agent === agent ? row.calls : 0), 0);
  agents.sort((a, b) => calls(b) - calls(a));
  const at = new Map(keys.map((key, index) => [key, index]));
  const series = agents.map((agent) => ({ name: agent || "unnamed", values: keys.map(() => 0) }));
  for (const row of rows) {
    const index = at.get(row[bucket]!);
    if (index !== undefined) series[agents.indexOf(row.agent!)]!.values[index]! += row.calls;
  }
  return { labels: keys.map((key) => label(key, bucket)), series };
}

function daysFrom(since: string): string[] {
  const days: string[] = [];
  for (let time = Date.parse(since); time <= Date.now(); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10));
  return days;
}

function label(key: string, bucket: "day" | "month"): string {
  const date = new Date(bucket === "day" ? key : `${key}-01`);
  return date.toLocaleDateString(
    undefined,
    bucket === "day"
      ? { day: "numeric", month: "short", timeZone: "UTC" }
      : { month: "short", year: "2-digit", timeZone: "UTC" },
  );
}

function Table({ name, stats }: { name: "tool" | "agent"; stats: Stats }) {
  const most = Math.max(1, ...stats.rows.map((row) => row.calls));
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={`By ${name}`}>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{name === "tool" ? "Tool" : "Agent"}</th>
            <th scope="col" class="figures-bar">
              Calls
            </th>
            <th scope="col" class="number">
              <span class="unseen">Number of calls</span>
            </th>
            <th scope="col" class="number">
              Succeeded
            </th>
            <th scope="col" class="number">
              Average
            </th>
            <th scope="col" class="number" title="95 of 100 calls are faster">
              p95
            </th>
          </tr>
        </thead>
        <tbody>
          {stats.rows.map((row) => (
            <tr key={row[name]}>
              <th scope="row">{row[name] || "unnamed"}</th>
              <td class="figures-bar">
                <ShareBar part={row.calls} of={most} />
              </td>
              <td class="number">{formatNumber(row.calls)}</td>
              <td class="number">{rate(row.success_rate)}</td>
              <td class="number">
                {row.average_ms === null ? "—" : formatDuration(row.average_ms)}
              </td>
              <td class="number">{row.p95_ms === null ? "—" : formatDuration(row.p95_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function StorePanel({ project }: { project: string }) {
  const sizes = useResource(
    async () => {
      if (!project) return null;
      const [page, stored] = await Promise.all([
        api.checkpoints(project, { limit: 200 }),
        api.projectSizes(project),
      ]);
      return { checkpoints: page.checkpoints, stored };
    },
    [project],
    (event) => event.project === project && event.kind === "operation",
  );
  if (!sizes.data?.checkpoints.length) return null;
  const { checkpoints, stored } = sizes.data;
  const points = [...checkpoints]
    .reverse()
    .map((each) => ({ at: each.created_at, value: each.bytes }));
  const held = checkpoints.reduce((sum, each) => sum + each.bytes, 0);
  const name = projects.value?.find((each) => each.project === project)?.name ?? "";
  return (
    <section class="panel">
      <h2>Size of {name} at each checkpoint</h2>
      <p class="faint">
        The last {count(checkpoints.length, "checkpoint")} hold {formatSize(held)} of files, stored
        in {formatSize(stored.sizes.contents)}. <a href={urlFor("settings", project)}>Disk usage</a>
      </p>
      <Area title="Size of the project" points={points} shown={formatSize} />
    </section>
  );
}

function rate(value: number | null): string {
  return value === null ? "—" : `${(value * 100).toFixed(value === 1 ? 0 : 1)} %`;
}
