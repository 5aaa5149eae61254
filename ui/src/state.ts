/** State shared by all views: projects, the current project, theme, toasts. */

import { computed, effect, signal } from "@preact/signals";
import { api, type ProjectRow } from "./api";
import { listen } from "./live";
import { loadPreference, savePreference } from "./preferences";
import { route } from "./router";

/** The start page shows this many project cards; only their pending changes are counted. */
export const MAX_PROJECT_CARDS = 24;

export const projects = signal<ProjectRow[] | null>(null);
export const projectsProblem = signal<Error | null>(null);

const lastProject = signal(loadPreference("project"));

/** The current project: from the URL, else the last one used, else the newest. */
export const project = computed<ProjectRow | null>(() => {
  const all = projects.value ?? [];
  const wanted = route.value.project ?? lastProject.value;
  return all.find((each) => each.project === wanted) ?? all[0] ?? null;
});

/** Id of the current project; the URL has it before the project list is loaded. */
export const projectId = computed(() => route.value.project ?? project.value?.project ?? null);

effect(() => {
  const { project } = route.value;
  if (project && project !== lastProject.peek()) {
    lastProject.value = project;
    savePreference("project", project);
  }
});

export async function loadProjects(): Promise<void> {
  try {
    projects.value = (await api.projects()).projects;
    projectsProblem.value = null;
    void countPending();
  } catch (problem) {
    projectsProblem.value = problem as Error;
  }
}

/** Projects whose pending changes are being counted by the server. */
const countsInFlight = new Set<string>();

/** Count pending changes of projects the server has not opened, current one first. */
async function countPending(): Promise<void> {
  const here = projectId.peek();
  const unknown = (projects.peek() ?? [])
    .slice(0, MAX_PROJECT_CARDS)
    .filter((each) => !each.pending && each.exists && !countsInFlight.has(each.project))
    .sort((one, other) => Number(other.project === here) - Number(one.project === here));
  for (const { project } of unknown) {
    if (countsInFlight.has(project)) continue;
    countsInFlight.add(project);
    try {
      const row = await api.project(project);
      projects.value = projects.peek()!.map((each) => (each.project === project ? row : each));
    } catch {
      // The next live event retries.
    } finally {
      countsInFlight.delete(project);
    }
  }
}

export function start(): void {
  void loadProjects();
  let timer: number | undefined;
  listen((event) => {
    if (event.kind === "job" || event.kind === "entry" || timer !== undefined) return;
    timer = window.setTimeout(() => {
      timer = undefined;
      void loadProjects();
    }, 400);
  });
}

export type Theme = "system" | "light" | "dark";

export const theme = signal<Theme>((loadPreference("theme") as Theme | null) ?? "system");

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  savePreference("theme", chosen === "system" ? null : chosen);
}

export interface Toast {
  id: number;
  text: string;
  tone: "plain" | "problem";
  action?: { label: string; run: () => void };
}

const TOAST_MS = 9000;
/** A toast with an action stays longer, so that the user has time to decide. */
const TOAST_WITH_ACTION_MS = 20_000;
let nextToast = 1;
export const toasts = signal<Toast[]>([]);

export function showToast(
  text: string,
  { tone = "plain", action }: { tone?: Toast["tone"]; action?: Toast["action"] } = {},
): void {
  const toast: Toast = { id: nextToast++, text, tone, ...(action ? { action } : {}) };
  toasts.value = [...toasts.value.slice(-2), toast];
  window.setTimeout(() => expire(toast.id), action ? TOAST_WITH_ACTION_MS : TOAST_MS);
}

/** The toast under the pointer or with the focus; it does not expire. */
export const pinnedToast = signal<number | null>(null);

function expire(id: number): void {
  if (pinnedToast.value === id) window.setTimeout(() => expire(id), 1000);
  else dismissToast(id);
}

/** Run the undo action of the newest toast that has one. */
export function undoNewestToast(): void {
  const offered = toasts.value.findLast((each) => UNDO_LABELS.includes(each.action?.label ?? ""));
  if (!offered) return;
  dismissToast(offered.id);
  offered.action!.run();
}

const UNDO_LABELS = ["Undo", "Take back"];

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

export function showError(problem: unknown): void {
  showToast(problem instanceof Error ? problem.message : String(problem), { tone: "problem" });
}
