/** The dialog for what an agent may do in a session without asking the user. */

import { useState } from "preact/hooks";
import { api, type Session } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icons";
import { Setting, Switch } from "../../parts/setting";
import { Segments } from "../../parts/small";
import { showError } from "../../state";

export function Approvals(props: { project: string; session: Session; close: () => void }) {
  const [session, setSession] = useState(props.session);
  const [pattern, setPattern] = useState("");
  const change = (body: Partial<Session>) =>
    void api.changeSession(props.project, session.session, body).then(setSession, showError);
  const patterns = Object.entries(session.sensitive_file_patterns);
  const setPatterns = (entries: [string, boolean][]) =>
    change({ sensitive_file_patterns: Object.fromEntries(entries) });
  const add = (event: Event) => {
    event.preventDefault();
    const wanted = pattern.trim();
    if (!wanted) return;
    // The last matching pattern wins, so a pattern added again moves to the end.
    setPatterns([...patterns.filter(([each]) => each !== wanted), [wanted, false]]);
    setPattern("");
  };
  return (
    <Dialog
      title="What the agent may do without asking"
      close={props.close}
      actions={
        <button type="button" class="button" onClick={props.close}>
          Done
        </button>
      }
    >
      <p>
        These settings are for agents that get their approvals from Mulligan. Other agents use their
        own settings. Whatever an agent changes, you can undo it here.
      </p>
      <div>
        <Setting label="Run commands" hint="Dangerous commands always need your approval.">
          <Switch
            on={session.auto_approve_commands}
            change={(on) => change({ auto_approve_commands: on })}
          />
        </Setting>
        <Setting label="Edit sensitive files" hint="Files that match an “Ask” pattern below.">
          <Switch
            on={session.auto_approve_sensitive_edits}
            change={(on) => change({ auto_approve_sensitive_edits: on })}
          />
        </Setting>
      </div>
      <section class="patterns">
        <h3>
          Files <span class="faint">the last matching pattern wins</span>
        </h3>
        {patterns.length > 0 && (
          <ol>
            {patterns.map(([each, free]) => (
              <li key={each}>
                <code>{each}</code>
                <span class="bar-space" />
                <Segments
                  label={`Edits of ${each}`}
                  value={free ? "free" : "ask"}
                  choose={(value) =>
                    setPatterns(
                      patterns.map(([name, was]) => [name, name === each ? value === "free" : was]),
                    )
                  }
                  options={[
                    { value: "ask", label: "Ask" },
                    { value: "free", label: "Do not ask" },
                  ]}
                />
                <button
                  type="button"
                  class="bare"
                  aria-label={`Remove ${each}`}
                  onClick={() => setPatterns(patterns.filter(([name]) => name !== each))}
                >
                  <Icon name="close" size={14} />
                </button>
              </li>
            ))}
          </ol>
        )}
        <form class="patterns-new" onSubmit={add}>
          <label class="field field-wide">
            <Icon name="file" size={14} />
            <span class="unseen">Pattern</span>
            <input
              value={pattern}
              placeholder="**/.env*"
              onInput={(event) => setPattern(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="button" disabled={!pattern.trim()}>
            Add
          </button>
        </form>
      </section>
    </Dialog>
  );
}
