/** What checkpoints exclude: by default, and by the project's `.mulliganignore`. */

import { useEffect, useState } from "preact/hooks";
import { api, type DefaultExclude, type Excludes } from "../../api";
import { count, formatNumber } from "../../format";
import { Icon } from "../../parts/icons";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { showError, showToast } from "../../state";
import { undoOperations } from "../../undo";

export function ExcludesPanel({ project }: { project: string }) {
  const excludes = useResource(
    () => api.excludes(project),
    [project],
    (event) => event.project === project && ["files", "operation_changed"].includes(event.kind),
  );

  /** Write `.mulliganignore`; return false if it changed since `version` was read. */
  async function write(text: string, version: string | null): Promise<boolean> {
    try {
      const { operation } = await api.writeExcludes(project, { text, version });
      if (operation !== null)
        showToast("Saved. The rules apply from the next checkpoint on.", {
          action: { label: "Undo", run: () => void undo(operation).catch(showError) },
        });
      return true;
    } catch (problem) {
      showError(problem);
      return false;
    } finally {
      await excludes.reload();
    }
  }

  async function undo(operation: number): Promise<void> {
    await undoOperations(project, [operation]);
    await excludes.reload();
  }

  const { data } = excludes;
  return (
    <section class="panel" id="excludes">
      <h2>Excluded files</h2>
      <p class="faint">
        Checkpoints leave out files that can be rebuilt: they are never stored, restored or deleted.
        Files that git ignores are left out too; files that git tracks are always included. The
        numbers count files in this project. Press a pattern to include its files from now on.
      </p>
      {excludes.problem && !data ? (
        <ErrorBox problem={excludes.problem} retry={() => void excludes.reload()} />
      ) : !data ? (
        <Skeleton lines={8} height={44} />
      ) : (
        <>
          <Defaults excludes={data} write={write} />
          <OwnRules excludes={data} write={write} />
        </>
      )}
    </section>
  );
}

type Write = (text: string, version: string | null) => Promise<boolean>;

function Defaults({ excludes, write }: { excludes: Excludes; write: Write }) {
  const [busy, setBusy] = useState(false);
  const groups = new Map<string, DefaultExclude[]>();
  for (const each of excludes.defaults)
    groups.set(each.note, [...(groups.get(each.note) ?? []), each]);
  async function toggle({ pattern, left_out }: DefaultExclude): Promise<void> {
    setBusy(true);
    const line = `!${pattern}`;
    const text = left_out ? withLine(excludes.text, line) : without(excludes.text, line);
    await write(text, excludes.version);
    setBusy(false);
  }
  return (
    <>
      <ul class="excludes">
        {[...groups].map(([note, patterns]) => (
          <li key={note}>
            <span class="excludes-note">{note}</span>
            <span class="excludes-patterns">
              {patterns.map((each) => (
                <button
                  key={each.pattern}
                  type="button"
                  class="chip chip-code"
                  aria-pressed={!each.left_out}
                  disabled={busy}
                  title={titleOf(each)}
                  onClick={() => void toggle(each)}
                >
                  {!each.left_out && <Icon name="check" size={12} />}
                  {each.pattern}
                  {each.left_out && each.files > 0 && (
                    <span class="excludes-files">
                      {formatNumber(each.files)}
                      <span class="unseen"> {each.files === 1 ? "file" : "files"} here</span>
                    </span>
                  )}
                </button>
              ))}
            </span>
          </li>
        ))}
      </ul>
      {excludes.single_files > 0 && (
        <p class="faint excludes-single">
          And {count(excludes.single_files, "single file")}, such as logs and compiled code. The
          next checkpoint counts them by pattern.
        </p>
      )}
    </>
  );
}

function titleOf({ left_out, files }: DefaultExclude): string {
  if (!left_out) return "Included by .mulliganignore. Press to exclude it again.";
  const here = files ? `: ${count(files, "file")} here` : "";
  return `Excluded${here}. Press to include it from now on.`;
}

function OwnRules({ excludes, write }: { excludes: Excludes; write: Write }) {
  const [base, setBase] = useState(excludes);
  const [text, setText] = useState(shown(excludes));
  const edited = text !== shown(base);
  const takeOver = () => {
    setBase(excludes);
    setText(shown(excludes));
  };
  useEffect(() => {
    // Never overwrite the user's typing, also not what is typed before this effect runs. Saving
    // reports if the file has changed.
    if (edited || excludes.version === base.version) return;
    setBase(excludes);
    setText((now) => (now === shown(base) ? shown(excludes) : now));
  }, [excludes.version, base.version, edited]);
  const save = async () => {
    const wanted = base.text.includes("\r\n") ? text.replaceAll("\n", "\r\n") : text;
    if (await write(wanted, base.version)) setBase({ ...base, text: wanted });
  };
  return (
    <div class="own-excludes">
      <label for="mulliganignore">
        <h3>
          <code>.mulliganignore</code>
        </h3>
        <p class="faint">
          Your own rules, in the syntax of <code>.gitignore</code>. They win over git's and the
          defaults: <code>secrets/</code> excludes, <code>!dist/</code> includes again.
        </p>
      </label>
      <textarea
        id="mulliganignore"
        class="code text-area"
        spellcheck={false}
        rows={Math.min(16, Math.max(4, text.split("\n").length + 1))}
        placeholder="# nothing yet"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="panel-foot">
        <span class="faint">
          {edited ? "Not saved yet." : excludes.version ? "" : "There is no such file yet."}
        </span>
        {edited && (
          <button type="button" class="button" onClick={takeOver}>
            Cancel
          </button>
        )}
        <button type="button" class="button primary" disabled={!edited} onClick={() => void save()}>
          Save
        </button>
      </div>
    </div>
  );
}

/** Return the text as a text area holds it: with LF line ends. */
function shown({ text }: Excludes): string {
  return text.replaceAll("\r\n", "\n");
}

function withLine(text: string, line: string): string {
  const ended = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return `${ended}${line}\n`;
}

function without(text: string, line: string): string {
  return text
    .split("\n")
    .filter((each) => each.trim() !== line)
    .join("\n");
}
