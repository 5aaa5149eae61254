/** One checkpoint: its changes against another, its files, or its coverage. */

import { api, type Checkpoint, type FileChange } from "../../api";
import { DiffStream } from "../../diff/stream";
import { count, firstLine, formatDateTime, formatSize, formatTime } from "../../format";
import { COLUMNS_PREFERENCE, ColumnsChoice, type Columns } from "../../parts/columns-choice";
import { narrow } from "../../parts/narrow";
import { Select } from "../../parts/select";
import { EmptyState, ErrorBox, Segments, Skeleton } from "../../parts/small";
import { usePreference } from "../../preferences";
import { useResource, type Resource } from "../../resource";
import { route, setQuery, urlFor } from "../../router";
import { Coverage } from "./coverage";
import { Files } from "./files";
import { KINDS } from "./list";
import { Total } from "./total";

type Part = "changes" | "files" | "coverage";

export function Detail(props: {
  project: string;
  one: Checkpoint;
  all: Checkpoint[];
  before: Checkpoint | null;
  /** The base that the user pinned for comparisons. */
  pinned: string | null;
  pin: (id: string) => void;
  restore: (paths: string[]) => void;
}) {
  const { project, one, all, before, pinned } = props;
  const { query } = route.value;
  const part = (query.get("part") as Part | null) ?? "changes";
  const usual = before ? before.checkpoint : "";
  const base = query.get("base") ?? (pinned && pinned !== one.checkpoint ? pinned : usual);
  const [columns, chooseColumns] = usePreference<Columns>(COLUMNS_PREFERENCE, "unified");
  const diff = useResource(
    () => compare(project, base, one.checkpoint),
    [project, one.checkpoint, base],
    (event) => base === "disk" && event.project === project && event.kind === "files",
  );
  return (
    <>
      <Head project={project} one={one} pinned={pinned} pin={props.pin} />
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
              options={baseOptions(one, before, all, base)}
            />
            {diff.data && <Total files={diff.data.files} />}
            <span class="bar-space" />
            {!narrow.value && <ColumnsChoice value={columns} choose={chooseColumns} />}
          </>
        )}
      </div>
      {part === "files" ? (
        <Files project={project} checkpoint={one.checkpoint} restore={props.restore} />
      ) : part === "coverage" ? (
        <Coverage of={one.coverage} />
      ) : (
        <Changes
          project={project}
          checkpoint={one.checkpoint}
          base={base}
          diff={diff}
          split={columns === "split" && !narrow.value}
        />
      )}
    </>
  );
}

function Head(props: {
  project: string;
  one: Checkpoint;
  pinned: string | null;
  pin: (id: string) => void;
}) {
  const { one } = props;
  const isPinned = props.pinned === one.checkpoint;
  return (
    <div class="point-head">
      <div class="point-about">
        <h2>{one.message || KINDS[one.kind] || one.kind}</h2>
        <p class="session-facts">
          <span>{formatDateTime(one.created_at)}</span>
          <span>{count(one.files, "file")}</span>
          <span>{formatSize(one.bytes)}</span>
          <code>{one.checkpoint.slice(0, 8)}</code>
          {one.session && one.entry && (
            <a href={urlFor("session", props.project, { id: one.session, entry: one.entry })}>
              show in the session
            </a>
          )}
        </p>
      </div>
      <button
        type="button"
        class="small"
        aria-pressed={isPinned}
        title="Compare the checkpoints that you choose next with this one (b)"
        onClick={() => props.pin(one.checkpoint)}
      >
        {isPinned ? "Choose another to compare" : "Compare from here"}
      </button>
    </div>
  );
}

function Changes(props: {
  project: string;
  checkpoint: string;
  base: string;
  diff: Resource<{ files: FileChange[] }>;
  split: boolean;
}) {
  const { project, checkpoint, base, diff } = props;
  if (diff.problem) return <ErrorBox problem={diff.problem} retry={() => void diff.reload()} />;
  if (!diff.data) return <Skeleton lines={10} height={22} />;
  if (!diff.data.files.length)
    return (
      <EmptyState icon="check" title={base ? "No difference" : "The first checkpoint"}>
        <p>
          {base
            ? "Both hold the same files."
            : "There is no earlier checkpoint to compare with. Look at its files, or compare it with the disk."}
        </p>
      </EmptyState>
    );
  return (
    <DiffStream
      files={diff.data.files}
      split={props.split}
      read={(path) =>
        base === "disk" ? api.file(project, path) : api.fileAt(project, checkpoint, path)
      }
    />
  );
}

/** Compare with an earlier checkpoint, with the disk, or with nothing. */
function compare(
  project: string,
  base: string,
  checkpoint: string,
): Promise<{ files: FileChange[] }> {
  if (base === "disk") return api.diff(project, { from: checkpoint });
  if (base) return api.diff(project, { from: base, to: checkpoint });
  return Promise.resolve({ files: [] });
}

function baseOptions(
  one: Checkpoint,
  before: Checkpoint | null,
  all: Checkpoint[],
  base: string,
): [value: string, label: string][] {
  const others = all.filter((each) => each !== one && each !== before);
  const isListed = ["", "disk"].includes(base) || all.some((each) => each.checkpoint === base);
  return [
    before ? [before.checkpoint, "the previous one"] : ["", "nothing (the first one)"],
    ["disk", "this one to the disk"],
    ...others.map((each): [string, string] => [
      each.checkpoint,
      `${formatTime(each.created_at)} ${firstLine(each.message, 40)}`,
    ]),
    ...(isListed ? [] : [[base, base.slice(0, 8)] as [string, string]]),
  ];
}
