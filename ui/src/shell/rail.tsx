/** The navigation at the side: projects, views, theme and help. */

import { helpShown } from "../keys";
import { connection } from "../live";
import { Icon, Sign } from "../parts/icons";
import { go, route, urlFor } from "../router";
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
        <Item view="home" icon="home" label="Sessions" href={urlFor("home")} also="session" />
        <Item
          view="review"
          icon="review"
          label="Review"
          href={urlFor("review", here)}
          count={pending}
        />
        <Item
          view="checkpoints"
          icon="checkpoints"
          label="Checkpoints"
          href={urlFor("checkpoints", here)}
        />
        <Item view="search" icon="search" label="Search" href={urlFor("search")} hint="/" />
        <Item view="statistics" icon="statistics" label="Statistics" href={urlFor("statistics")} />
        <Item view="settings" icon="settings" label="Settings" href={urlFor("settings", here)} />
      </ul>
      <div class="rail-foot">
        <span class={`live live-${connection.value}`} title={`Live updates: ${connection.value}`}>
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
          const { view } = route.value;
          const inside = ["review", "checkpoints", "settings"].includes(view) ? view : "review";
          go(urlFor(inside, event.currentTarget.value));
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

function Item(props: {
  view: string;
  icon: string;
  label: string;
  href: string;
  count?: number;
  hint?: string;
  also?: string;
}) {
  const active = [props.view, props.also].includes(route.value.view);
  return (
    <li>
      <a href={props.href} aria-current={active ? "page" : undefined} title={props.label}>
        <Icon name={props.icon} />
        <span class="rail-word">{props.label}</span>
        {props.count ? (
          <span class="rail-count" aria-label={`${props.count} files pending`}>
            {props.count}
          </span>
        ) : props.hint ? (
          <kbd class="rail-hint">{props.hint}</kbd>
        ) : null}
      </a>
    </li>
  );
}
