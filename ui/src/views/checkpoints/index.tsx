/** Checkpoints: the project's history, to compare, browse and restore. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Checkpoint } from "../../api";
import { count } from "../../format";
import { useKeys } from "../../keys";
import { EmptyState, ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { route, setQuery } from "../../router";
import { NoProject } from "../../shell/noproject";
import { projectId, showError, showToast } from "../../state";
import { Detail } from "./detail";
import { CheckpointList } from "./list";
import { Now } from "./now";
import { useCheckpoints } from "./pages";
import { Restore } from "./restore";
import { summed } from "./total";

export default function Checkpoints() {
  const project = projectId.value;
  if (!project)
    return (
      <NoProject icon="checkpoints" title="No checkpoints yet">
        Run <code>mulligan up</code> in a project, and its first checkpoint is taken.
      </NoProject>
    );
  return <CheckpointsOf key={project} project={project} />;
}

function CheckpointsOf({ project }: { project: string }) {
  const { query } = route.value;
  const { all, more, problem, next, reload } = useCheckpoints(project, query.get("c"));
  const latest = all?.[0]?.checkpoint ?? "";
  const status = useResource(
    () => api.diff(project, { from: latest, stat: true }),
    [project, latest],
    (event) => event.project === project && event.kind !== "entry",
  );
  const [restoring, setRestoring] = useState<{ checkpoint: Checkpoint; paths: string[] } | null>(
    null,
  );
  const [busy, setBusy] = useState(false);
  const chosen = query.get("c") ?? all?.[0]?.checkpoint ?? null;
  const index = all?.findIndex((each) => each.checkpoint === chosen) ?? -1;
  const end = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry!.isIntersecting && void next(), {
      rootMargin: "400px",
    });
    if (end.current) observer.observe(end.current);
    return () => observer.disconnect();
  }, [next]);

  const choose = (id: string) => setQuery({ c: id, base: null });
  const pinned = query.get("held");
  const pin = (id: string | null) =>
    setQuery({ c: chosen, base: null, held: id === "now" || id === pinned ? null : id });
  const move = (by: number) => {
    if (!all?.length) return;
    const at = chosen === "now" ? -1 : index;
    const target = Math.min(Math.max(at + by, -1), all.length - 1);
    choose(target < 0 ? "now" : all[target]!.checkpoint);
    document.querySelectorAll(".point")[target + 1]?.scrollIntoView({ block: "nearest" });
  };
  useKeys("Checkpoints", [
    { key: "j", does: "older checkpoint", run: () => move(1) },
    { key: "k", does: "newer checkpoint", run: () => move(-1) },
    { key: "b", does: "compare others with this one, or stop", run: () => pin(chosen) },
  ]);

  async function take(): Promise<void> {
    setBusy(true);
    try {
      const made = await api.takeCheckpoint(project, "");
      showToast(`Checkpoint taken: ${count(made.files, "file")}.`);
      await reload();
      choose(made.checkpoint);
    } catch (problem) {
      showError(problem);
    } finally {
      setBusy(false);
    }
  }

  const one = index >= 0 ? all![index]! : null;
  return (
    <div class="view">
      <header class="bar">
        <h1>Checkpoints</h1>
        <span class="bar-space" />
        <button type="button" class="button" disabled={busy} onClick={() => void take()}>
          {busy ? "Taking a checkpoint…" : "Take a checkpoint"}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={!one}
          onClick={() => one && setRestoring({ checkpoint: one, paths: [] })}
        >
          Restore…
        </button>
      </header>
      <div class="points-panes">
        <div class="points" tabIndex={0} role="group" aria-label="Checkpoints">
          {!all && problem ? (
            <ErrorBox problem={problem} retry={() => void reload()} />
          ) : !all ? (
            <Skeleton lines={9} height={44} />
          ) : (
            <>
              <CheckpointList
                checkpoints={all}
                chosen={chosen}
                pinned={pinned}
                choose={choose}
                changed={status.data ? summed(status.data.files) : null}
              />
              <div ref={end}>{more && <Skeleton lines={1} />}</div>
            </>
          )}
        </div>
        <div class="point-pane">
          {chosen === "now" ? (
            <Now project={project} latest={latest} />
          ) : one ? (
            <Detail
              key={one.checkpoint}
              project={project}
              one={one}
              all={all!}
              before={all![index + 1] ?? null}
              pinned={pinned}
              pin={pin}
              restore={(paths) => setRestoring({ checkpoint: one, paths })}
            />
          ) : all && !all.length ? (
            <EmptyState icon="checkpoints" title="No checkpoints yet">
              <p>
                A checkpoint holds every file of the project. Take the first one now; later ones
                store only what changed.
              </p>
            </EmptyState>
          ) : (
            !problem && <Skeleton lines={8} />
          )}
        </div>
      </div>
      {restoring && (
        <Restore
          project={project}
          checkpoint={restoring.checkpoint}
          paths={restoring.paths}
          close={() => setRestoring(null)}
        />
      )}
    </div>
  );
}
