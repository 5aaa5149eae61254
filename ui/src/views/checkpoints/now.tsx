/** The changes on the disk since the latest checkpoint. */

import { api } from "../../api";
import { DiffStream } from "../../diff/stream";
import { COLUMNS_PREFERENCE } from "../../parts/columns-choice";
import { narrow } from "../../parts/narrow";
import { EmptyState, ErrorBox, Skeleton } from "../../parts/small";
import { loadPreference } from "../../preferences";
import { useResource } from "../../resource";
import { Total } from "./total";

export function Now({ project, latest }: { project: string; latest: string }) {
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
        split={loadPreference(COLUMNS_PREFERENCE) === "split" && !narrow.value}
        read={(path) => api.file(project, path)}
      />
    </>
  );
}
