/** The list of changed files beside the changes. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { PendingHunk } from "../../api";
import { Counts, Path, Skeleton, StatusLetter } from "../../parts/small";
import { VirtualList, type Row, type VirtualHandle } from "../../parts/virtual";
import type { FilePart, Group } from "./groups";

interface HeadRow extends Row {
  group: Group;
}

interface FileRow extends Row {
  part: FilePart;
}

export function FileList(props: {
  groups: Group[];
  current: PendingHunk | null;
  show: (hunk: PendingHunk) => void;
  loading: boolean;
}) {
  const { groups, current } = props;
  const list = useRef<VirtualHandle>(null);
  const rows = useMemo(
    () =>
      groups.flatMap((group): (HeadRow | FileRow)[] => [
        ...(group.title ? [{ key: `g ${group.key}`, height: 44, group }] : []),
        ...group.parts.map((part) => ({ key: `f ${part.key}`, height: 30, part })),
      ]),
    [groups],
  );
  const here = useMemo(
    () => current && rows.find((row) => "part" in row && row.part.hunks.includes(current)),
    [rows, current],
  );
  useEffect(() => {
    if (here) list.current?.show(here.key);
  }, [here?.key]);
  return (
    <aside class="review-files" aria-label="Changed files">
      {props.loading ? (
        <Skeleton lines={8} height={24} />
      ) : (
        <VirtualList
          rows={rows}
          label="Changed files"
          handle={list}
          render={(row) =>
            "group" in row ? (
              <div key={row.key} class="files-group" style={{ height: "44px" }}>
                <span class="files-title">{row.group.title}</span>
                <span class="faint">{row.group.note}</span>
              </div>
            ) : (
              <button
                key={row.key}
                type="button"
                class={row === here ? "files-row is-active" : "files-row"}
                aria-current={row === here ? "true" : undefined}
                onClick={() => props.show(row.part.hunks[0]!)}
              >
                <StatusLetter of={row.part.file.status} />
                <Path path={row.part.file.path} />
                <Counts additions={row.part.additions} deletions={row.part.deletions} />
              </button>
            )
          }
        />
      )}
    </aside>
  );
}
