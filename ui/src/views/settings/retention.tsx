/** Retention rules, and the dialogs that forget checkpoints and delete sessions. */

import { useEffect, useState } from "preact/hooks";
import { api, type SettingsRow } from "../../api";
import { count, formatNumber, formatSize } from "../../format";
import { Dialog } from "../../parts/dialog";
import { showError, showToast } from "../../state";
import { ClearSessions } from "./clear";
import { Progress, useJob } from "./jobs";
import { Rows, type Settings } from "./values";

interface Forgotten {
  forgotten: string[];
  kept: number;
}

export function Retention({ project, settings }: { project: string; settings: Settings }) {
  const [asking, setAsking] = useState<"forget" | "clear" | null>(null);
  const close = () => setAsking(null);
  const rules = settings.data ? rulesOf(settings.data) : [];
  return (
    <section class="panel" id="forgetting">
      <h2>Forgetting</h2>
      <p class="faint">
        Rules choose which checkpoints to forget; nothing is forgotten until you press “Forget now”.
        The latest checkpoint and those that the next undo and redo need always stay. So do
        sessions.
      </p>
      <Rows names={["keep_last", "keep_days", "keep_size"]} settings={settings} />
      <div class="panel-foot">
        <span class="faint">
          {rules.length ? `Forgets ${either(rules)}.` : "No rule yet. Set one above."}
        </span>
        <button
          type="button"
          class="button danger"
          disabled={!rules.length}
          onClick={() => setAsking("forget")}
        >
          Forget now…
        </button>
      </div>
      <div class="panel-foot">
        <span class="faint">All sessions of this project, with their checkpoints.</span>
        <button type="button" class="button danger" onClick={() => setAsking("clear")}>
          Delete all sessions…
        </button>
      </div>
      {asking === "forget" && settings.data && (
        <Forget project={project} rules={settings.data} close={close} />
      )}
      {asking === "clear" && <ClearSessions project={project} close={close} />}
    </section>
  );
}

/** The dialog that previews what the rules forget, then forgets it. */
function Forget(props: { project: string; rules: SettingsRow; close: () => void }) {
  const { project, rules, close } = props;
  const body = {
    ...(rules.keep_last ? { keep_last: rules.keep_last } : {}),
    ...(rules.keep_days ? { older_than: rules.keep_days * 86_400 } : {}),
    ...(rules.keep_size ? { max_bytes: rules.keep_size } : {}),
  };
  const preview = useJob();
  const forget = useJob();
  useEffect(() => preview.start(api.forget(project, { ...body, dry_run: true })), []);
  useEffect(() => {
    if (forget.job?.state !== "done") return;
    const { forgotten, kept } = forget.job.result as Forgotten;
    showToast(`Forgot ${count(forgotten.length, "checkpoint")}; ${formatNumber(kept)} stay.`, {
      action: { label: "Free the space", run: () => void free(project) },
    });
    close();
  }, [forget.job?.state]);
  const plan = preview.job?.state === "done" ? (preview.job.result as Forgotten) : null;
  const many = plan?.forgotten.length ?? 0;
  return (
    <Dialog
      title="Forget old checkpoints?"
      close={close}
      actions={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button
            type="button"
            class="button danger"
            disabled={!many || forget.job?.state === "running"}
            onClick={() => forget.start(api.forget(project, body))}
          >
            {many ? `Forget ${count(many, "checkpoint")}` : "Forget"}
          </button>
        </>
      }
    >
      <p>The rules forget {either(rulesOf(rules))}.</p>
      {!plan && <Progress job={preview.job} resultText={() => ""} />}
      {plan && many === 0 && <p>These rules match no checkpoint.</p>}
      {plan && many > 0 && (
        <>
          <p>
            <strong>{count(many, "checkpoint")}</strong> would be forgotten,{" "}
            {formatNumber(plan.kept)} stay. Content that only the forgotten ones hold can no longer
            be restored. No file of the project and no session is touched.
          </p>
          <p class="faint">
            This cannot be undone. Use “Free space” afterwards to reclaim the disk space.
          </p>
        </>
      )}
      <Progress job={forget.job} resultText={() => ""} />
    </Dialog>
  );
}

async function free(project: string): Promise<void> {
  try {
    await api.gc(project, {});
    showToast("The space is being freed.");
  } catch (problem) {
    showError(problem);
  }
}

function rulesOf({ keep_last, keep_days, keep_size }: SettingsRow): string[] {
  return [
    keep_last ? `all but the last ${count(keep_last, "checkpoint")}` : "",
    keep_days ? `those older than ${count(keep_days, "day")}` : "",
    keep_size ? `the oldest, until the rest fits into ${formatSize(keep_size)}` : "",
  ].filter(Boolean);
}

function either(rules: string[]): string {
  return rules.join("; and ");
}
