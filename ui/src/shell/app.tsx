/** The frame around all views: where to go, what happens, and what went wrong. */

import { useEffect } from "preact/hooks";
import { lazily } from "./lazily";
import { Connection } from "./connection";
import { Help } from "./help";
import { Rail } from "./rail";
import { Toasts } from "./toasts";
import { helpShown, useKeys } from "../keys";
import { Guard } from "../parts/guard";
import { escaped } from "../parts/invisible";
import { Empty, Trouble } from "../parts/small";
import { go, place, to } from "../router";
import { project, undoLatest } from "../state";
import Home from "../views/home";

const views: Record<string, () => preact.JSX.Element | null> = {
  home: Home,
  review: lazily(() => import("../views/review")),
  session: lazily(() => import("../views/session")),
  checkpoints: lazily(() => import("../views/checkpoints")),
  search: lazily(() => import("../views/search")),
  statistics: lazily(() => import("../views/statistics")),
  settings: lazily(() => import("../views/settings")),
};

const TITLES: Record<string, string> = {
  home: "Sessions",
  review: "Review",
  session: "Session",
  checkpoints: "Checkpoints",
  search: "Search",
  statistics: "Statistics",
  settings: "Settings and health",
};

export function App() {
  const { view } = place.value;
  const View = views[view] ?? Lost;
  useEffect(() => {
    const name = project.value?.name;
    const of = name ? ` · ${escaped(name)}` : "";
    document.title = `${TITLES[view] ?? "Mulligan"}${of} · Mulligan`;
  }, [view, project.value?.name]);
  useKeys("Everywhere", [
    { key: "/", does: "search", run: search },
    { key: "g h", does: "go to the sessions", run: () => go(to("home")) },
    { key: "g r", does: "go to the review", run: () => go(to("review", project.value?.project)) },
    {
      key: "g c",
      does: "go to the checkpoints",
      run: () => go(to("checkpoints", project.value?.project)),
    },
    { key: "g s", does: "go to the search", run: search },
    { key: "g t", does: "go to the statistics", run: () => go(to("statistics")) },
    {
      key: "g e",
      does: "go to settings and health",
      run: () => go(to("settings", project.value?.project)),
    },
    { key: "u", does: "undo what was just done, while it is offered", run: undoLatest },
    { key: "?", does: "show or hide this help", run: () => (helpShown.value = !helpShown.value) },
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to the content
      </a>
      <Rail />
      <main id="main" class="main" tabIndex={-1}>
        <Connection />
        <Guard key={view} fallback={undrawn}>
          <View />
        </Guard>
      </main>
      <Toasts />
      {helpShown.value && <Help />}
    </>
  );
}

function undrawn(problem: Error, retry: () => void) {
  const said = new Error(`This view could not be drawn: ${problem.message}`);
  return <Trouble problem={said} retry={retry} />;
}

function search(): void {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field) {
    field.focus();
    field.select();
  } else {
    go(to("search"));
  }
}

function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Lost() {
  return (
    <Empty icon="search" title="There is nothing at this address">
      <p>
        <a class="button" href="/">
          To the sessions
        </a>
      </p>
    </Empty>
  );
}
