/** Import sessions from the agents' own logs. */

import { useState } from "preact/hooks";
import { api } from "../../api";
import { count } from "../../format";
import { Select } from "../../parts/select";
import { useJob } from "./jobs";
import { MaintenanceTask } from "./maintenance-task";

const AGENTS = ["claude-code", "codex", "gemini", "opencode", "pi", "aider"];

export function Import() {
  const [agent, setAgent] = useState(AGENTS[0]!);
  const work = useJob();
  return (
    <section class="panel" id="import">
      <h2>Import</h2>
      <MaintenanceTask
        title="Import the agents' own logs"
        about="Makes sessions from before Mulligan searchable, in all projects. Importing twice adds nothing twice."
        job={work.job}
        resultText={(result) => imported(result as Record<string, unknown> | null)}
      >
        <Select
          label="Agent"
          value={agent}
          choose={setAgent}
          options={AGENTS.map((each): [string, string] => [each, each])}
          class="field-number"
        />
        <button
          type="button"
          class="button"
          disabled={work.job?.state === "running"}
          onClick={() => work.start(api.importLogs(agent))}
        >
          Import
        </button>
      </MaintenanceTask>
    </section>
  );
}

function imported(result: Record<string, unknown> | null): string {
  const sessions = result?.sessions;
  return typeof sessions === "number" ? `${count(sessions, "session")} imported.` : "Done.";
}
