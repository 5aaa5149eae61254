/** Background jobs of the server: start, follow, stop. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { api, type JobRow } from "../../api";
import { formatNumber } from "../../format";
import { listen } from "../../live";
import { showError } from "../../state";

const POLL_MS = 1500;

/** Start a job and follow its progress. */
export function useJob(): { job: JobRow | null; start: (begin: Promise<{ job: string }>) => void } {
  const [job, setJob] = useState<JobRow | null>(null);
  const [id, setId] = useState<string | null>(null);
  useEffect(() => {
    if (!id) return undefined;
    const look = () => void api.job(id).then(setJob, showError);
    look();
    // Polling makes up for missed events.
    const timer = window.setInterval(look, POLL_MS);
    const stop = listen((event) => {
      if (event.kind === "job" && event.job === id) setJob(event as unknown as JobRow);
    });
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [id]);
  useEffect(() => {
    if (job && job.state !== "running") setId(null);
  }, [job?.state]);
  const start = useCallback((begin: Promise<{ job: string }>) => {
    setJob(null);
    begin.then((made) => setId(made.job), showError);
  }, []);
  return { job, start };
}

export function Progress({
  job,
  resultText,
}: {
  job: JobRow | null;
  resultText: (result: unknown) => string;
}) {
  if (!job) return null;
  if (job.state === "running")
    return (
      <div class="progress" role="status">
        <progress
          max={job.total ?? undefined}
          value={job.total ? job.done : undefined}
          aria-label={job.stage || "Working"}
        />
        <span class="faint">
          {job.stage || "working"} {job.done ? formatNumber(job.done) : ""}
          {job.total ? ` of ${formatNumber(job.total)}` : ""}
        </span>
        <button
          type="button"
          class="small"
          onClick={() => void api.cancelJob(job.job).catch(showError)}
        >
          Stop
        </button>
      </div>
    );
  const text =
    job.state === "done"
      ? resultText(job.result)
      : job.state === "cancelled"
        ? "Stopped."
        : (job.error?.message ?? "The job failed. Try again, or run `mulligan doctor`.");
  return (
    <p class={job.state === "failed" ? "job-failed" : "job-done"} role="status">
      {text}
    </p>
  );
}
