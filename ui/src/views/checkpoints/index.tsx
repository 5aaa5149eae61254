/** Checkpoints: the project's history, to compare, browse and restore. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Checkpoint, type Coverage as CoverageOf, type FileChange } from "../../api";
import { DiffStream } from "../../diff/stream";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { narrow } from "../../parts/narrow";
import { Select } from "../../parts/select";
import { Counts, EmptyState, Path, Segments, Skeleton, ErrorBox } from "../../parts/small";
import { useResource } from "../../resource";
import { route, setQuery, urlFor } from "../../router";
import { NoProject } from "../../shell/noproject";
import { showError, projectId, showToast, savePreference, loadPreference } from "../../state";
import { count, firstLine, formatSize, formatTime, formatDateTime } from "../../format";
import { Files } from "./files";
import { CheckpointList, KINDS } from "./list";
import { useCheckpoints } from "./pages";
import { Restore } from "./restore";

type Part = "changes" | "files" | "coverage";

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
  const held = query.get("held");
  const hold = (id: string | null) =>
    setQuery({ c: chosen, base: null, held: id === "now" || id === held ? null : id });
  const move = (by: number) => {
    if (!all?.length) return;
    const at = chosen === "now" ? -1 : index;
    const to_ = Math.min(Math.max(at + by, -1), all.length - 1);
    choose(to_ < 0 ? "now" : all[to_]!.checkpoint);
    document.querySelectorAll(".point")[to_ + 1]?.scrollIntoView({ block: "nearest" });
  };
  useKeys("Checkpoints", [
    { key: "j", does: "older checkpoint", run: () => move(1) },
    { key: "k", does: "newer checkpoint", run: () => move(-1) },
    { key: "b", does: "compare others with this one, or no longer", run: () => hold(chosen) },
  ]);

  async function take(): Promise<void> {
    setBusy(true);
    try {
      const made = await api.takeCheckpoint(project, "");
      showToast(`Checkpoint taken: ${count(made.files, "file")}.`);
      await reload();
      choose(made.checkpoint);
    } catch (why) {
      showError(why);
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
                held={held}
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
              held={held}
              hold={hold}
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

function Now({ project, latest }: { project: string; latest: string }) {
  const diff = useResource(
    () => api.diff(project, { from: latest }),
    [project, latest],
    (event) => event.project === project && event.kind !== "entry",
  );
  if (diff.problem) return <ErrorBox problem={diff.problem} retry={() => void diff.reload()} />;
  if (!diff.data) return <Skeleton lines={10} height={22} />;
  if (!diff.data.files.length)
    return (
      <EmptyState icon="check" title="Nothing has changed">
        <p>All files are the same as in the latest checkpoint.</p>
      </EmptyState>
    );
  return (
    <>
      <div class="point-head">
        <h2>Changed since the latest checkpoint</h2>
        <Total files={diff.data.files} />
      </div>
      <DiffStream
        files={diff.data.files}
        split={loadPreference("review-side") === "split" && !narrow.value}
        read={(path) => api.file(project, path)}
      />
    </>
  );
}

function Detail(props: {
  project: string;
  one: Checkpoint;
  all: Checkpoint[];
  before: Checkpoint | null;
  /** The base that the user pinned for comparisons. */
  held: string | null;
  hold: (id: string | null) => void;
  restore: (paths: string[]) => void;
}) {
  const { project, one, all, before, held } = props;
  const { query } = route.value;
  const part = (query.get("part") as Part | null) ?? "changes";
  const usual = before ? before.checkpoint : "";
  const base = query.get("base") ?? (held && held !== one.checkpoint ? held : usual);
  const [side, setSide] = useState(loadPreference("review-side") ?? "unified");
  const diff = useResource(
    () =>
      base === "disk"
        ? api.diff(project, { from: one.checkpoint })
        : base
          ? api.diff(project, { from: base, to: one.checkpoint })
          : Promise.resolve({ files: [] }),
    [project, one.checkpoint, base],
    (event) => base === "disk" && event.project === project && event.kind === "files",
  );
  return (
    <>
      <div class="point-head">
        <div class="point-about">
          <h2>{one.message || KINDS[one.kind] || one.kind}</h2>
          <p class="session-facts">
            <span>{formatDateTime(one.created_at)}</span>
            <span>{count(one.files, "file")}</span>
            <span>{formatSize(one.bytes)}</span>
            <code>{one.checkpoint.slice(0, 8)}</code>
            {one.session && one.entry && (
              <a href={urlFor("session", project, { id: one.session, entry: one.entry })}>
                show in the session
              </a>
            )}
          </p>
        </div>
        <button
          type="button"
          class="small"
          aria-pressed={held === one.checkpoint}
          title="Compare the checkpoints that you choose next with this one (b)"
          onClick={() => props.hold(one.checkpoint)}
        >
          {held === one.checkpoint ? "Choose another to compare" : "Compare from here"}
        </button>
      </div>
      <div class="point-tools">
        <Segments<Part>
          label="What to look at"
          value={part}
          choose={(value) => setQuery({ part: value === "changes" ? null : value })}
          options={[
            { value: "changes", label: "Changes" },
            { value: "files", label: "Files" },
            {
              value: "coverage",
              label: one.coverage.complete ? "Coverage" : "Coverage: incomplete",
            },
          ]}
        />
        {part === "changes" && (
          <>
            <Select
              label="Compared with"
              lead="from"
              class="compare"
              value={base}
              choose={(value) => setQuery({ base: value })}
              options={[
                before ? [before.checkpoint, "the previous one"] : ["", "nothing (the first one)"],
                ["disk", "this one to the disk"],
                ...all
                  .filter((each) => each !== one && each !== before)
                  .map((each): [string, string] => [
                    each.checkpoint,
                    `${formatTime(each.created_at)} ${firstLine(each.message, 40)}`,
                  ]),
                ...(all.some((each) => each.checkpoint === base) || ["", "disk"].includes(base)
                  ? []
                  : [[base, base.slice(0, 8)] as [string, string]]),
              ]}
            />
            {diff.data && <Total files={diff.data.files} />}
            <span class="bar-space" />
            {!narrow.value && (
              <Segments
                label="Columns"
                value={side as "unified" | "split"}
                choose={(value) => (setSide(value), savePreference("review-side", value))}
                options={[
                  { value: "unified", label: "One column", icon: "unified" },
                  { value: "split", label: "Side by side", icon: "split" },
                ]}
              />
            )}
          </>
        )}
      </div>
      {part === "files" ? (
        <Files project={project} checkpoint={one.checkpoint} restore={props.restore} />
      ) : part === "coverage" ? (
        <Coverage of={one.coverage} />
      ) : diff.problem ? (
        <ErrorBox problem={diff.problem} retry={() => void diff.reload()} />
      ) : !diff.data ? (
        <Skeleton lines={10} height={22} />
      ) : !diff.data.files.length ? (
        <EmptyState icon="check" title={base ? "No difference" : "The first checkpoint"}>
          <p>
            {base
              ? "Both hold the same files."
              : "There is no earlier checkpoint to compare with. Look at its files, or compare it with the disk."}
          </p>
        </EmptyState>
      ) : (
        <DiffStream
          files={diff.data.files}
          split={side === "split" && !narrow.value}
          read={(path) =>
            base === "disk"
              ? api.file(project, path)
              : api.fileAt(project, one.checkpoint, path)
          }
        />
      )}
    </>
  );
}

function Coverage({ of }: { of: CoverageOf }) {
  return (
    <div class="page-scroll" tabIndex={0} role="group" aria-label="Coverage">
      <div class="coverage">
        <p class="coverage-word">
          <Icon name={of.complete ? "check" : "warning"} />
          {of.complete
            ? "Everything that is in scope is in this checkpoint."
            : `${count(of.skipped.length, "path")} in scope could not be read and are missing.`}
          {of.guarded > 0 &&
            ` ${count(of.guarded, "small ignored file")} (such as .env) are kept as copies.`}
        </p>
        {of.skipped.length > 0 && (
          <section class="plan-part">
            <h3>Missing</h3>
            <ul>
              {of.skipped.map((each) => (
                <li key={each.path}>
                  <Path path={each.path} />
                  <span class="plan-reason">{each.reason}</span>
                </li>
              ))}
            </ul>
          </section>
        )}
        {of.excluded.length > 0 && (
          <section class="plan-part">
            <h3>
              Excluded by rules <span class="faint">never restored, never deleted</span>
            </h3>
            <ul>
              {of.excluded.map((each) => (
                <li key={each.path}>
                  <Path path={each.path} />
                  <span class="plan-reason">
                    {count(each.files, "file")}, {each.reason}
                  </span>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

function Total({ files }: { files: FileChange[] }) {
  const sum = summed(files);
  return (
    <span class="bar-note">
      {count(sum.files, "file")} <Counts {...sum} />
    </span>
  );
}

function summed(files: FileChange[]) {
  return {
    files: files.length,
    additions: files.reduce((sum, each) => sum + each.additions, 0),
    deletions: files.reduce((sum, each) => sum + each.deletions, 0),
  };
}
