/** The way to everything: projects, views, theme and help. */

import { helpShown } from "../keys";
import { connection } from "../live";
import { Icon, Sign } from "../parts/icons";
import { go, place, to } from "../router";
import { project, projects } from "../state";
import { ThemeChoice } from "./theme";

export function Rail() {
  const here = project.value?.project;
  const pending = Object.values(project.value?.pending ?? {}).reduce(
    (sum, each) => sum + each.files,
    0,
  );
  return (
    <nav class="rail" aria-label="Mulligan">
      <a class="rail-brand" href="/">
        <Sign />
        <span class="rail-word">Mulligan</span>
      </a>
      <Projects />
      <ul class="rail-views">
        <Item view="home" icon="home" label="Sessions" href={to("home")} also="session" />
        <Item
          view="review"
          icon="review"
          label="Review"
          href={to("review", here)}
          count={pending}
        />
        <Item
          view="checkpoints"
          icon="checkpoints"
          label="Checkpoints"
          href={to("checkpoints", here)}
        />
        <Item view="search" icon="search" label="Search" href={to("search")} hint="/" />
        <Item view="statistics" icon="statistics" label="Statistics" href={to("statistics")} />
        <Item view="settings" icon="settings" label="Settings" href={to("settings", here)} />
      </ul>
      <div class="rail-foot">
        <span class={`live live-${connection.value}`} title={`Events: ${connection.value}`}>
          <span class="live-dot" />
          <span class="rail-word">
            {connection.value === "live"
              ? "Live"
              : connection.value === "lost"
                ? "No server"
                : "Connecting"}
          </span>
        </span>
        <ThemeChoice />
        <button
          type="button"
          class="bare"
          aria-label="Keyboard help"
          title="Keyboard help (?)"
          onClick={() => (helpShown.value = true)}
        >
          <Icon name="help" />
        </button>
      </div>
    </nav>
  );
}

function Projects() {
  const all = projects.value ?? [];
  if (!all.length) return <div class="rail-project rail-none" />;
  return (
    <label class="rail-project" title={project.value?.root}>
      <Icon name="folder" />
      <span class="unseen">Project</span>
      <select
        value={project.value?.project ?? ""}
        onChange={(event) => {
          const { view } = place.value;
          const inside = ["review", "checkpoints", "settings"].includes(view) ? view : "review";
          go(to(inside, event.currentTarget.value));
        }}
      >
        {all.map((each) => (
          <option key={each.project} value={each.project}>
            {each.name}
          </option>
        ))}
      </select>
      <Icon name="down" size={12} />
    </label>
  );
}

function Item(given: {
  view: string;
  icon: string;
  label: string;
  href: string;
  count?: number;
  hint?: string;
  also?: string;
}) {
  const active = [given.view, given.also].includes(place.value.view);
  return (
    <li>
      <a href={given.href} aria-current={active ? "page" : undefined} title={given.label}>
        <Icon name={given.icon} />
        <span class="rail-word">{given.label}</span>
        {given.count ? (
          <span class="rail-count" aria-label={`${given.count} files pending`}>
            {given.count}
          </span>
        ) : given.hint ? (
          <kbd class="rail-hint">{given.hint}</kbd>
        ) : null}
      </a>
    </li>
  );
}
