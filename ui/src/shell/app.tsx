/** The frame around all views: navigation, connection state, toasts and help. */

import { useEffect } from "preact/hooks";
import { helpShown, useKeys } from "../keys";
import { Guard } from "../parts/guard";
import { escapeInvisible } from "../parts/invisible";
import { EmptyState, ErrorBox } from "../parts/small";
import { go, route, urlFor } from "../router";
import { project, undoNewestToast } from "../state";
import Home from "../views/home";
import { Connection } from "./connection";
import { Help } from "./help";
import { lazyView } from "./lazy-view";
import { Rail } from "./rail";
import { Toasts } from "./toasts";

const views: Record<string, () => preact.JSX.Element | null> = {
  home: Home,
  review: lazyView(() => import("../views/review")),
  session: lazyView(() => import("../views/session")),
  checkpoints: lazyView(() => import("../views/checkpoints")),
  search: lazyView(() => import("../views/search")),
  statistics: lazyView(() => import("../views/statistics")),
  settings: lazyView(() => import("../views/settings")),
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
  const { view } = route.value;
  const View = views[view] ?? UnknownAddress;
  useEffect(() => {
    const name = project.value?.name;
    const of = name ? ` · ${escapeInvisible(name)}` : "";
    document.title = `${TITLES[view] ?? "Mulligan"}${of} · Mulligan`;
  }, [view, project.value?.name]);
  useKeys("Everywhere", [
    { key: "/", does: "search", run: search },
    { key: "g h", does: "go to the sessions", run: () => go(urlFor("home")) },
    {
      key: "g r",
      does: "go to the review",
      run: () => go(urlFor("review", project.value?.project)),
    },
    {
      key: "g c",
      does: "go to the checkpoints",
      run: () => go(urlFor("checkpoints", project.value?.project)),
    },
    { key: "g s", does: "go to the search", run: search },
    { key: "g t", does: "go to the statistics", run: () => go(urlFor("statistics")) },
    {
      key: "g e",
      does: "go to settings and health",
      run: () => go(urlFor("settings", project.value?.project)),
    },
    { key: "u", does: "undo what was just done, while its message is shown", run: undoNewestToast },
    { key: "?", does: "show or hide this help", run: () => (helpShown.value = !helpShown.value) },
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <Rail />
      <main id="main" class="main" tabIndex={-1}>
        <Connection />
        <Guard key={view} fallback={failedView}>
          <View />
        </Guard>
      </main>
      <Toasts />
      {helpShown.value && <Help />}
    </>
  );
}

function failedView(problem: Error, retry: () => void) {
  const message = `This view could not be shown: ${problem.message}`;
  return <ErrorBox problem={new Error(message)} retry={retry} />;
}

function search(): void {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field) {
    field.focus();
    field.select();
  } else {
    go(urlFor("search"));
  }
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function UnknownAddress() {
  return (
    <EmptyState icon="search" title="There is no page at this address">
      <p>
        <a class="button" href="/">
          Go to the sessions
        </a>
      </p>
    </EmptyState>
  );
}
