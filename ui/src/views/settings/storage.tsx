/** Disk usage by kind and project, with buttons to free space and verify the store. */

import { useEffect } from "preact/hooks";
import { api, type ProjectSizes, type Sizes } from "../../api";
import { count, formatSize } from "../../format";
import { BreakdownBar, ShareBar } from "../../parts/plots";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { projects } from "../../state";
import { useJob } from "./jobs";
import { MaintenanceTask } from "./maintenance-task";

const NAMES: [keyof Sizes, string][] = [
  ["contents", "Contents of files"],
  ["journal", "Sessions and log"],
  ["search", "Search"],
  ["indexes", "Indexes"],
  ["other", "Other"],
];

interface Collected {
  removed: number;
  freed_bytes: number;
  dry_run: boolean;
}

interface Verified {
  objects: number;
  bytes: number;
  checkpoints: number;
  problems: string[];
}

export function Storage({ project }: { project: string }) {
  const mine = (event: { project: string | null; kind: string }) =>
    event.project === project && event.kind === "operation";
  const one = useResource(() => api.projectSizes(project), [project], mine);
  const all = useResource(() => api.sizes(), [project], mine);
  const verify = useJob();
  const gc = useJob();
  const busy = [verify, gc].some(({ job }) => job?.state === "running");
  const result = gc.job?.state === "done" ? (gc.job.result as Collected) : null;
  const free = result?.dry_run ? result.freed_bytes : null;
  useEffect(() => {
    if (gc.job?.state === "done") void Promise.all([one.reload(), all.reload()]);
  }, [gc.job?.state]);
  return (
    <section class="panel" id="storage">
      <h2>Storage</h2>
      {one.problem ? (
        <ErrorBox problem={one.problem} retry={() => void one.reload()} />
      ) : !one.data ? (
        <Skeleton lines={2} height={40} flush />
      ) : (
        <Project usage={one.data} free={free} />
      )}
      {all.data && all.data.projects.length > 1 && (
        <Projects sizes={all.data.projects} here={project} />
      )}
      <p class="faint storage-free">
        {all.data ? `${formatSize(all.data.free)} free on this disk.` : " "}
      </p>
      <MaintenanceTask
        title="Free space"
        about="Deletes stored data that no checkpoint and no session needs any more."
        job={gc.job}
        resultText={(result) => collected(result as Collected)}
      >
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() => gc.start(api.gc(project, { dry_run: true }))}
        >
          How much?
        </button>
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() => gc.start(api.gc(project, {}))}
        >
          {free ? `Free ${formatSize(free)}` : "Free space"}
        </button>
      </MaintenanceTask>
      <MaintenanceTask
        title="Verify"
        about="Reads and hashes all stored data, and checks every reference."
        job={verify.job}
        resultText={(result) => verified(result as Verified)}
      >
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() => verify.start(api.verify(project, {}))}
        >
          Verify
        </button>
      </MaintenanceTask>
    </section>
  );
}

function Project({ usage, free }: { usage: ProjectSizes; free: number | null }) {
  const { sizes, objects } = usage;
  const parts = NAMES.map(([key, name]) => ({ name, value: Number(sizes[key]) }));
  if (free) {
    parts[0]!.value -= free;
    parts.push({ name: "Can be freed", value: free });
  }
  return (
    <>
      <p class="storage-sum">
        <strong>{formatSize(sizes.total)}</strong>{" "}
        <span class="faint">for this project, in {count(objects, "object")}</span>
      </p>
      <BreakdownBar title="Disk usage" parts={parts} shown={formatSize} />
    </>
  );
}

const MAX_PROJECTS = 12;

function Projects({ sizes, here }: { sizes: Sizes[]; here: string }) {
  const most = Math.max(1, ...sizes.map((each) => each.total));
  const name = (each: Sizes) =>
    projects.value?.find((known) => known.project === each.project)?.name ?? each.root;
  const rest = sizes.slice(MAX_PROJECTS);
  return (
    <table class="figures storage-projects">
      <thead>
        <tr>
          <th scope="col">Project</th>
          <th scope="col" class="figures-bar">
            <span class="unseen">Share</span>
          </th>
          <th scope="col" class="number">
            Size
          </th>
        </tr>
      </thead>
      <tbody>
        {sizes.slice(0, MAX_PROJECTS).map((each) => (
          <tr key={each.project} class={each.project === here ? "is-here" : undefined}>
            <th scope="row" title={each.root}>
              {name(each)}
            </th>
            <td class="figures-bar">
              <ShareBar part={each.total} of={most} />
            </td>
            <td class="number">{formatSize(each.total)}</td>
          </tr>
        ))}
        {rest.length > 0 && (
          <tr>
            <th scope="row">and {count(rest.length, "smaller one")}</th>
            <td />
            <td class="number">{formatSize(rest.reduce((sum, each) => sum + each.total, 0))}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function verified(result: Verified): string {
  if (result.problems.length) return result.problems.join(" ");
  return `All is well: ${count(result.objects, "object")}, ${formatSize(result.bytes)}, ${count(result.checkpoints, "checkpoint")}.`;
}

function collected(result: Collected): string {
  const much = `${count(result.removed, "object")}, ${formatSize(result.freed_bytes)}`;
  return result.dry_run ? `${much} could be freed.` : `Freed ${much}.`;
}
