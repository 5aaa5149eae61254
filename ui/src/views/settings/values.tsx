/** Settings as rows: meaning, value, where the value comes from, and a reset to the default. */

import { useEffect, useState } from "preact/hooks";
import { api, type SettingsChange, type SettingsRow } from "../../api";
import { formatSize, parseSize } from "../../format";
import { Setting, Switch } from "../../parts/setting";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource, type Resource } from "../../resource";
import { showError, showToast } from "../../state";

export type SettingName = Exclude<keyof SettingsRow, "origins">;

interface About {
  label: string;
  hint: string;
  kind: "size" | "switch" | "number";
  unit?: string;
  /** True if 0 means “no rule” and is shown as an empty field. */
  isRule?: boolean;
}

const ABOUT: Record<SettingName, About> = {
  max_file_size: {
    label: "Largest file",
    hint: "Larger files are listed in a checkpoint's coverage, but not stored.",
    kind: "size",
  },
  guard: {
    label: "Guard small ignored files",
    hint: "Keep copies of files such as .env that only a file pattern ignores.",
    kind: "switch",
  },
  guard_file_size: {
    label: "Largest guarded file",
    hint: "Larger ignored files are not copied.",
    kind: "size",
  },
  guard_total_size: {
    label: "All guarded files together",
    hint: "Files beyond this limit are not copied.",
    kind: "size",
  },
  keep_on_commit: {
    label: "Keep changes on commit",
    hint: "Changes that you commit with git count as reviewed and kept.",
    kind: "switch",
  },
  tell_rejections: {
    label: "Tell agents what was undone",
    hint: "At its next prompt, an agent is told which of its changes you undid.",
    kind: "switch",
  },
  strict: {
    label: "Stop agents that cannot be recorded",
    hint: "If Mulligan cannot record an agent's work, the agent is stopped, so that all work can be undone.",
    kind: "switch",
  },
  keep_last: {
    label: "Keep the last",
    hint: "Checkpoints made by a restore or at the end of a turn are not counted.",
    kind: "number",
    unit: "checkpoints",
    isRule: true,
  },
  keep_days: {
    label: "Keep for",
    hint: "Older checkpoints are forgotten.",
    kind: "number",
    unit: "days",
    isRule: true,
  },
  keep_size: {
    label: "Keep at most",
    hint: "The oldest checkpoints are forgotten until the rest fits.",
    kind: "size",
    isRule: true,
  },
};

export interface Settings extends Resource<SettingsRow> {
  change: (body: SettingsChange) => Promise<void>;
}

export function useSettings(project: string): Settings {
  const settings = useResource(
    () => api.settings(project),
    [project],
    (event) => event.project === project && event.kind === "files",
  );
  async function change(body: SettingsChange): Promise<void> {
    try {
      const now = await api.changeSettings(project, body);
      settings.set(() => now);
      showToast("Saved for this project.");
    } catch (problem) {
      showError(problem);
      await settings.reload();
    }
  }
  return { ...settings, change };
}

export function Values(props: {
  id: string;
  title: string;
  about: string;
  names: SettingName[];
  settings: Settings;
}) {
  return (
    <section class="panel" id={props.id}>
      <h2>{props.title}</h2>
      <p class="faint">{props.about}</p>
      <Rows names={props.names} settings={props.settings} />
    </section>
  );
}

export function Rows({ names, settings }: { names: SettingName[]; settings: Settings }) {
  const { data, problem } = settings;
  if (problem && !data) return <ErrorBox problem={problem} retry={() => void settings.reload()} />;
  if (!data) return <Skeleton lines={names.length} height={56} flush />;
  return (
    <>
      {names.map((name) => (
        <Row key={name} name={name} values={data} change={settings.change} />
      ))}
    </>
  );
}

function Row(props: {
  name: SettingName;
  values: SettingsRow;
  change: (body: SettingsChange) => Promise<void>;
}) {
  const { name, values } = props;
  const about = ABOUT[name];
  const origin = values.origins[name];
  const fixed = origin === "project";
  const set = (value: number | boolean) => void props.change({ [name]: value });
  return (
    <Setting label={about.label} hint={about.hint} note={noteOf(name, origin, props.change)}>
      {about.kind === "switch" ? (
        <Switch on={Boolean(values[name])} disabled={fixed} change={set} />
      ) : (
        <Field about={about} value={Number(values[name])} disabled={fixed} set={set} />
      )}
    </Setting>
  );
}

function noteOf(name: SettingName, origin: string | undefined, change: Settings["change"]) {
  if (origin === "project")
    return (
      <>
        Set in the project's <code>.mulligan.toml</code>, which overrides this setting.
      </>
    );
  if (origin === "home")
    return (
      <>
        From <code>config.toml</code> in Mulligan's home, for all projects.
      </>
    );
  if (origin === "set")
    return (
      <>
        Set for this project.{" "}
        <button type="button" class="bare link" onClick={() => void change({ take_back: [name] })}>
          Back to the default
        </button>
      </>
    );
  return null;
}

/** An input for a number or a size; invalid text is marked at once and not saved. */
function Field(props: {
  about: About;
  value: number;
  disabled: boolean;
  set: (value: number) => void;
}) {
  const { about, value } = props;
  const { isRule } = about;
  const shown =
    isRule && value === 0 ? "" : about.kind === "size" ? formatSize(value) : String(value);
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const meant = text.trim() === "" && isRule ? 0 : parsed(about, text);
  const save = () => {
    if (meant !== null && text !== shown) props.set(meant);
  };
  return (
    <span class={meant === null ? "field field-number is-wrong" : "field field-number"}>
      <input
        value={text}
        inputMode={about.kind === "size" ? "text" : "numeric"}
        placeholder={isRule ? "no rule" : about.kind === "size" ? "100 MB" : ""}
        disabled={props.disabled}
        aria-invalid={meant === null}
        title={
          meant === null
            ? about.kind === "size"
              ? "Write a number and a unit, such as 100 MB."
              : "Write a whole number."
            : undefined
        }
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={save}
        onKeyDown={(event) => {
          if (event.key === "Enter") save();
          if (event.key === "Escape") setText(shown);
        }}
      />
      {about.unit}
    </span>
  );
}

function parsed(about: About, text: string): number | null {
  if (about.kind === "size") return parseSize(text);
  return /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : null;
}
