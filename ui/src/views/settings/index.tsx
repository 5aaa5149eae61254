/** Settings of a project, its health, disk usage, retention and import. */

import { useRef } from "preact/hooks";
import { NoProject } from "../../shell/noproject";
import { project as chosenProject, projectId } from "../../state";
import { ExcludesPanel } from "./excludes";
import { Health } from "./health";
import { Import } from "./importing";
import { Retention } from "./retention";
import { Storage } from "./storage";
import { ProjectRules } from "./trust";
import { useSettings, Values } from "./values";

const PARTS: [string, string][] = [
  ["health", "Health"],
  ["storage", "Storage"],
  ["forgetting", "Forgetting"],
  ["checkpoints", "Checkpoints"],
  ["trust", "Project's own rules"],
  ["excludes", "Excluded files"],
  ["agents", "Review and agents"],
  ["import", "Import"],
];

export default function SettingsView() {
  const project = projectId.value;
  if (!project)
    return (
      <NoProject icon="settings" title="No project yet">
        Run <code>mulligan up</code> in a project folder.
      </NoProject>
    );
  return <SettingsOf key={project} project={project} />;
}

function SettingsOf({ project }: { project: string }) {
  const root = chosenProject.value?.root ?? "";
  const box = useRef<HTMLDivElement>(null);
  const settings = useSettings(project);
  const show = (id: string) =>
    box.current?.querySelector(`#${id}`)?.scrollIntoView({ block: "start" });
  return (
    <div class="view">
      <header class="bar">
        <h1>Settings and health</h1>
        <span class="bar-note bar-path" title={root}>
          {root}
        </span>
      </header>
      <div
        class="page-scroll settings-scroll"
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Settings and health"
      >
        <nav class="settings-nav" aria-label="Parts of the settings">
          {PARTS.map(([id, label]) => (
            <button key={id} type="button" onClick={() => show(id)}>
              {label}
            </button>
          ))}
        </nav>
        <div class="settings-parts wide">
          <Health project={project} />
          <Storage project={project} />
          <Retention project={project} settings={settings} />
          <Values
            id="checkpoints"
            title="Checkpoints"
            about="How large a stored file may be, and which ignored files are kept as copies."
            names={["max_file_size", "guard", "guard_file_size", "guard_total_size"]}
            settings={settings}
          />
          <ProjectRules project={project} reloadSettings={settings.reload} />
          <ExcludesPanel project={project} />
          <Values
            id="agents"
            title="Review and agents"
            about="How the review works with git, and how strict Mulligan is with agents."
            names={["keep_on_commit", "tell_rejections", "strict"]}
            settings={settings}
          />
          <Import />
        </div>
      </div>
    </div>
  );
}
