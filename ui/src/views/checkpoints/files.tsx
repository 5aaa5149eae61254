/** The files of a checkpoint, to open or to select for a restore. */

import { useMemo, useState } from "preact/hooks";
import { api, type TreeEntry } from "../../api";
import { FileText } from "../../diff/file";
import { count, formatSize } from "../../format";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icons";
import { ErrorBox, Path, Skeleton } from "../../parts/small";
import { VirtualList } from "../../parts/virtual";
import { useResource } from "../../resource";

const MAX_SHOWN_CHARS = 8_000_000;

export function Files(props: {
  project: string;
  checkpoint: string;
  restore: (paths: string[]) => void;
}) {
  const { project, checkpoint } = props;
  const listing = useResource(
    () => api.checkpointFiles(project, checkpoint),
    [project, checkpoint],
  );
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [open, setOpen] = useState<TreeEntry | null>(null);
  const rows = useMemo(
    () =>
      (listing.data?.files ?? [])
        .filter(
          (file) =>
            file.kind !== "directory" && file.path.toLowerCase().includes(words.toLowerCase()),
        )
        .map((file) => ({ key: file.path, height: 34, file })),
    [listing.data, words],
  );
  const toggle = (path: string) =>
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  if (listing.problem)
    return <ErrorBox problem={listing.problem} retry={() => void listing.reload()} />;
  return (
    <div class="files">
      <div class="files-bar">
        <label class="field">
          <Icon name="search" size={14} />
          <span class="unseen">Filter the files</span>
          <input
            type="search"
            placeholder="Filter the files"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </label>
        <span class="faint">{listing.data ? count(rows.length, "file") : ""}</span>
        <span class="bar-space" />
        <button
          type="button"
          class="button"
          disabled={!chosen.size}
          onClick={() => props.restore([...chosen])}
        >
          Restore {chosen.size ? count(chosen.size, "file") : "chosen files"}…
        </button>
      </div>
      {!listing.data ? (
        <Skeleton lines={8} height={24} />
      ) : (
        <VirtualList
          rows={rows}
          label="Files of the checkpoint"
          render={({ file, key }) => (
            <div key={key} class="tree-file">
              <input
                type="checkbox"
                aria-label={`Choose ${file.path}`}
                checked={chosen.has(file.path)}
                onChange={() => toggle(file.path)}
              />
              <button type="button" onClick={() => setOpen(file)}>
                <Path path={file.path} />
                {file.guarded && (
                  <span class="tag" title="An ignored file, kept as a copy because it is small">
                    guarded
                  </span>
                )}
                {file.kind === "link" && <span class="tag">link</span>}
                <span class="bar-space" />
                <span class="faint">{formatSize(file.size)}</span>
              </button>
            </div>
          )}
        />
      )}
      {open && (
        <FileDialog
          project={project}
          checkpoint={checkpoint}
          file={open}
          close={() => setOpen(null)}
          restore={() => props.restore([open.path])}
        />
      )}
    </div>
  );
}

function FileDialog(props: {
  project: string;
  checkpoint: string;
  file: TreeEntry;
  close: () => void;
  restore: () => void;
}) {
  const { project, checkpoint, file } = props;
  const content = useResource(
    () => api.fileAt(project, checkpoint, file.path),
    [checkpoint, file.path],
  );
  const text = content.data ?? "";
  const address = `/api/v1/projects/${project}/checkpoints/${checkpoint}/file?path=${encodeURIComponent(file.path)}`;
  return (
    <Dialog
      title={file.path}
      close={props.close}
      wide
      actions={
        <>
          <a class="button apart" href={address} download={file.path.split("/").pop()}>
            Download
          </a>
          <button type="button" class="button" onClick={() => (props.close(), props.restore())}>
            Restore this file…
          </button>
        </>
      }
    >
      <p class="faint">
        From checkpoint {checkpoint.slice(0, 8)} · {formatSize(file.size)} · {file.mode}
      </p>
      {content.problem ? (
        <ErrorBox problem={content.problem} />
      ) : content.data === undefined ? (
        <Skeleton lines={6} height={18} />
      ) : text.includes("\0") ? (
        <p>Binary file. Download it to see its content.</p>
      ) : (
        <>
          <FileText text={text.slice(0, MAX_SHOWN_CHARS)} path={file.path} />
          {text.length > MAX_SHOWN_CHARS && (
            <p class="faint">Only the beginning is shown. Download the file to see the rest.</p>
          )}
        </>
      )}
    </Dialog>
  );
}
