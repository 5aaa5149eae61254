/** The project's own rule files: what each would weaken, and buttons to accept it. */

import { useState } from "preact/hooks";
import { api, type ProjectRuleFile, type RuleFiles } from "../../api";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";
import { showError, showToast } from "../../state";

const MAX_SHOWN_CHARS = 20_000;

export function ProjectRules(props: { project: string; reloadSettings: () => Promise<void> }) {
  const { project } = props;
  const [busy, setBusy] = useState(false);
  const rules = useResource(
    () => api.ruleFiles(project),
    [project],
    (event) => event.project === project && ["files", "operation_changed"].includes(event.kind),
  );

  async function change(request: Promise<RuleFiles>, done: string): Promise<void> {
    setBusy(true);
    try {
      const now = await request;
      rules.set(() => now);
      showToast(done);
    } catch (problem) {
      showError(problem);
      await rules.reload();
    } finally {
      setBusy(false);
      await props.reloadSettings();
    }
  }

  const files = rules.data?.files ?? [];
  return (
    <section class="panel" id="trust">
      <h2>Project's own rules</h2>
      <p class="faint">
        Agents and other people can write <code>.mulligan.toml</code> and{" "}
        <code>.mulliganignore</code> too. A rule that protects less than your own settings applies
        only after you accept it.
      </p>
      {rules.problem && !rules.data ? (
        <ErrorBox problem={rules.problem} retry={() => void rules.reload()} />
      ) : !rules.data ? (
        <Skeleton lines={2} height={44} />
      ) : files.length === 0 ? (
        <p>Nothing in this project weakens your settings.</p>
      ) : (
        files.map((file) => (
          <RuleFile
            key={file.path}
            file={file}
            busy={busy}
            accept={(sha256) =>
              void change(api.trust(project, { path: file.path, sha256 }), `Accepted ${file.path}.`)
            }
          />
        ))
      )}
      {files.some((file) => file.accepted) && (
        <div class="panel-foot">
          <span class="faint">
            You accept a file as it is now. After a change you are asked again.
          </span>
          <button
            type="button"
            class="button"
            disabled={busy}
            onClick={() => void change(api.distrust(project), "Revoked. No rule file is accepted.")}
          >
            Revoke all
          </button>
        </div>
      )}
    </section>
  );
}

function RuleFile(props: {
  file: ProjectRuleFile;
  busy: boolean;
  accept: (sha256: string) => void;
}) {
  const { file } = props;
  const { sha256 } = file;
  const word = file.path.endsWith(".toml") ? "Weakens" : "Leaves out";
  // The user must see the whole file before accepting it.
  const whole = file.content.length <= MAX_SHOWN_CHARS;
  return (
    <div class="rule-file">
      <h3>
        <code>{file.path}</code>
      </h3>
      <p>
        {file.problem ? (
          `Not applied: ${file.problem}`
        ) : (
          <>
            {file.accepted ? "Accepted. " : "Not accepted. "}
            {word}: <code>{file.weakens.slice(0, 20).join(", ")}</code>
            {file.weakens.length > 20 && " …"}
          </>
        )}
      </p>
      {!file.problem && whole && (
        <pre class="code rule-text" tabIndex={0}>
          {file.content}
        </pre>
      )}
      {!file.problem && !file.accepted && sha256 !== null && (
        <div class="panel-foot">
          <span class="faint">
            {!whole && (
              <>
                Too long to be shown here: <code>mulligan trust</code> shows it.
              </>
            )}
          </span>
          <button
            type="button"
            class="button"
            disabled={props.busy || !whole}
            onClick={() => props.accept(sha256)}
          >
            Accept
          </button>
        </div>
      )}
    </div>
  );
}
