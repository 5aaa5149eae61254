/** Settings and health of a project: what is kept, what is wrong, and looking after the store. */

import { useState } from "preact/hooks";
import { api, Problem, type Finding, type SettingsRow } from "../../api";
import { Icon } from "../../parts/icons";
import { Empty, Skeleton, Trouble } from "../../parts/small";
import { useResource } from "../../resource";
import { complain, project as chosenProject, say } from "../../state";
import { count, size } from "../../words";
import { Progress, useJob } from "./jobs";

interface Setting {
  name: string;
  label: string;
  hint: string;
  kind: "size" | "switch";
}

const SETTINGS: Setting[] = [
  {
    name: "max_file_size",
    label: "Largest file",
    hint: "Larger ones are named in the coverage, not kept.",
    kind: "size",
  },
  {
    name: "guard",
    label: "Guard small ignored files",
    hint: "Keep copies of files such as .env, which only a pattern ignores.",
    kind: "switch",
  },
  { name: "guard_file_size", label: "Largest guarded file", hint: "", kind: "size" },
  { name: "guard_total_size", label: "All guarded files together", hint: "", kind: "size" },
  {
    name: "keep_on_commit",
    label: "A commit keeps",
    hint: "What you commit with git counts as kept.",
    kind: "switch",
  },
  {
    name: "tell_rejections",
    label: "Tell agents what was undone",
    hint: "At their next prompt.",
    kind: "switch",
  },
  {
    name: "strict",
    label: "Stop agents that cannot be recorded",
    hint: "Rather no work than work without an undo.",
    kind: "switch",
  },
];

export default function SettingsView() {
  const project = chosenProject.value;
  if (!project)
    return (
      <Empty icon="settings" title="No project yet">
        <p>
          Run <code>mulligan up</code> in one.
        </p>
      </Empty>
    );
  return (
    <div class="view" key={project.project}>
      <header class="bar">
        <h1>Settings and health</h1>
        <span class="bar-note">{project.root}</span>
      </header>
      <div class="page-scroll" tabIndex={0} role="group" aria-label="Settings and health">
        <div class="column wide">
          <Doctor project={project.project} />
          <Upkeep project={project.project} />
          <Settings project={project.project} />
          <Import />
        </div>
      </div>
    </div>
  );
}

const LEVELS: Record<string, string> = { ok: "check", note: "more", problem: "warning" };

function Doctor({ project }: { project: string }) {
  const found = useResource(
    () => api.doctor(project),
    [project],
    (event) => event.project === project && event.kind === "operation",
  );
  const order = (finding: Finding) => ["problem", "note", "ok"].indexOf(finding.level);
  return (
    <section class="panel">
      <h2>Health</h2>
      {found.problem ? (
        <Trouble problem={found.problem} retry={() => void found.reload()} />
      ) : !found.data ? (
        <Skeleton lines={4} height={28} />
      ) : (
        <ul class="findings">
          {[...found.data.findings]
            .sort((a, b) => order(a) - order(b))
            .map((each, at) => (
              <li key={at} class={`finding finding-${each.level}`}>
                <Icon name={LEVELS[each.level] ?? "more"} />
                <span class="finding-subject">{each.subject}</span>
                <span class="finding-text">
                  {each.message}
                  {each.mend && <span class="faint"> — {each.mend}</span>}
                </span>
              </li>
            ))}
        </ul>
      )}
    </section>
  );
}

function Upkeep({ project }: { project: string }) {
  const verify = useJob();
  const gc = useJob();
  const forget = useJob();
  const [last, setLast] = useState("100");
  const busy = [verify, gc, forget].some(({ job }) => job?.state === "running");
  return (
    <section class="panel">
      <h2>Looking after the store</h2>
      <div class="chore">
        <div>
          <h3>Verify</h3>
          <p class="faint">
            Reads and hashes everything that is stored, and checks every reference.
          </p>
          <Progress job={verify.job} told={(result) => verified(result as Verified)} />
        </div>
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() => verify.start(api.verify(project, {}))}
        >
          Verify
        </button>
      </div>
      <div class="chore">
        <div>
          <h3>Free space</h3>
          <p class="faint">Removes what no checkpoint needs any more.</p>
          <Progress job={gc.job} told={(result) => collected(result as Collected)} />
        </div>
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
          Free it
        </button>
      </div>
      <div class="chore">
        <div>
          <h3>Forget old checkpoints</h3>
          <p class="faint">All but the last so many. Mulligan never does this by itself.</p>
          <Progress job={forget.job} told={(result) => forgotten(result as Forgotten)} />
        </div>
        <label class="field field-number">
          <span class="unseen">How many to keep</span>
          <input
            type="number"
            min="1"
            value={last}
            onInput={(event) => setLast(event.currentTarget.value)}
          />
        </label>
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() =>
            forget.start(api.forget(project, { keep_last: Number(last), dry_run: true }))
          }
        >
          Which?
        </button>
        <button
          type="button"
          class="button danger"
          disabled={busy}
          onClick={() => forget.start(api.forget(project, { keep_last: Number(last) }))}
        >
          Forget
        </button>
      </div>
    </section>
  );
}

interface Verified {
  objects: number;
  bytes: number;
  checkpoints: number;
  problems: string[];
}

interface Collected {
  removed: number;
  freed_bytes: number;
  kept: number;
  dry_run: boolean;
}

interface Forgotten {
  forgotten: string[];
  kept: number;
  dry_run: boolean;
}

function verified(found: Verified): string {
  if (found.problems.length) return found.problems.join(" ");
  return `All is well: ${count(found.objects, "object")}, ${size(found.bytes)}, ${count(found.checkpoints, "checkpoint")}.`;
}

function collected(found: Collected): string {
  const much = `${count(found.removed, "object")}, ${size(found.freed_bytes)}`;
  return found.dry_run ? `${much} could be freed.` : `Freed ${much}.`;
}

function forgotten(found: Forgotten): string {
  const many = count(found.forgotten.length, "checkpoint");
  return found.dry_run
    ? `${many} would be forgotten, ${found.kept} stay.`
    : `Forgot ${many}; ${found.kept} stay. Free space to give their room back.`;
}

function Settings({ project }: { project: string }) {
  const found = useResource(() => api.settings(project), [project]);
  const [refused, setRefused] = useState<string | null>(null);
  async function change(name: string, value: number | boolean): Promise<void> {
    try {
      const now = await api.changeSettings(project, { [name]: value });
      found.set(() => now);
      say("Saved for this project.");
    } catch (problem) {
      if (problem instanceof Problem && problem.code === "unsupported") setRefused(problem.message);
      else complain(problem);
      await found.reload();
    }
  }
  return (
    <section class="panel">
      <h2>Settings</h2>
      <p class="faint">
        What is in force for this project. A <code>.mulligan.toml</code> in it wins over what is set
        here; what to leave out is said in <code>.mulliganignore</code>.
      </p>
      {refused && <p class="job-failed">{refused}</p>}
      {found.problem ? (
        <Trouble problem={found.problem} />
      ) : !found.data ? (
        <Skeleton lines={5} height={36} />
      ) : (
        SETTINGS.filter(({ name }) => name in found.data!).map((setting) => (
          <Row key={setting.name} setting={setting} values={found.data!} change={change} />
        ))
      )}
    </section>
  );
}

const MEGABYTE = 1 << 20;

function Row({
  setting,
  values,
  change,
}: {
  setting: Setting;
  values: SettingsRow;
  change: (name: string, value: number | boolean) => Promise<void>;
}) {
  const value = values[setting.name]!;
  return (
    <label class="setting">
      <span>
        {setting.label}
        {setting.hint && <small class="faint">{setting.hint}</small>}
      </span>
      {setting.kind === "switch" ? (
        <input
          type="checkbox"
          role="switch"
          class="switch"
          checked={Boolean(value)}
          onChange={(event) => void change(setting.name, event.currentTarget.checked)}
        />
      ) : (
        <span class="field field-number">
          <input
            type="number"
            min="0"
            step="1"
            value={Math.round(Number(value) / MEGABYTE)}
            onChange={(event) =>
              void change(setting.name, Number(event.currentTarget.value) * MEGABYTE)
            }
          />
          MB
        </span>
      )}
    </label>
  );
}

const AGENTS = ["claude-code", "codex", "gemini", "opencode", "pi", "aider"];

function Import() {
  const [agent, setAgent] = useState(AGENTS[0]!);
  const work = useJob();
  return (
    <section class="panel">
      <h2>Take in what agents logged</h2>
      <div class="chore">
        <div>
          <p class="faint">
            Sessions that were there before Mulligan become searchable. Doing it twice doubles
            nothing.
          </p>
          <Progress
            job={work.job}
            told={(result) => imported(result as Record<string, unknown> | null)}
          />
        </div>
        <label class="field field-small">
          <span class="unseen">Agent</span>
          <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            {AGENTS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="button"
          disabled={work.job?.state === "running"}
          onClick={() => work.start(api.importLogs(agent))}
        >
          Import
        </button>
      </div>
    </section>
  );
}

function imported(found: Record<string, unknown> | null): string {
  const number = (name: string) =>
    typeof found?.[name] === "number" ? (found[name] as number) : null;
  const sessions = number("sessions");
  return sessions === null ? "Done." : `${count(sessions, "session")} taken in.`;
}
