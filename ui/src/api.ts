/**
 * The HTTP client: every request that the page makes, except the event stream (`live.ts`).
 *
 * A test compares the paths with the OpenAPI document.
 */

import type {
  Approved,
  Checkpoint,
  Checkpoints,
  Cleared,
  Conversation,
  Discarded,
  Entry,
  EntryPage,
  Excludes,
  FileChange,
  Finding,
  SearchResult,
  Health,
  HomeSizes,
  JobRow,
  Kept,
  Navigation,
  Operation,
  ProjectRow,
  ProjectSizes,
  Reset,
  RestoreResult,
  Review,
  Round,
  RoundStatus,
  RuleFiles,
  Session,
  Sessions,
  SettingsRow,
  Stats,
  Tree,
  TreeEntry,
  TurnStatus,
} from "./types";

export type * from "./types";

/** An error reply of the server; `code` is `unreachable` if there was no reply. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

type Value = string | number | boolean | null | undefined;
type Params = Record<string, Value | readonly string[]>;

/** Which pending changes to keep or discard; selecting everything needs `all`. */
export interface Choice {
  hunks?: string[];
  paths?: string[];
  session?: string;
  turn?: number;
  all?: boolean;
}

/** Settings to change; `take_back` names settings to reset to their default. */
export type SettingsChange = Partial<Omit<SettingsRow, "origins">> & { take_back?: string[] };

export interface SearchQuery extends Params {
  q: string;
  project?: string;
  agent?: string;
  type?: string[];
  path?: string;
  since?: string;
  offset?: number;
}

export const api = {
  health: () => get<Health>("/health"),
  projects: () => get<{ projects: ProjectRow[] }>("/projects"),
  project: (project: string) => get<ProjectRow>("/projects/{project}", { project }),
  openProject: (path: string) => post<ProjectRow>("/projects", {}, { path }),

  sessions: (project: string, query: Params) =>
    get<Sessions>("/projects/{project}/sessions", { project }, query),
  session: (project: string, session: string) =>
    get<Session>("/projects/{project}/sessions/{session}", { project, session }),
  changeSession: (project: string, session: string, body: Partial<Session>) =>
    patch<Session>("/projects/{project}/sessions/{session}", { project, session }, body),
  deleteSession: (project: string, session: string) =>
    remove<Session>("/projects/{project}/sessions/{session}", { project, session }),
  clearSessions: (project: string, body: { confirm?: string | null }) =>
    post<Cleared>("/projects/{project}/sessions/clear", { project }, body),
  entries: (project: string, session: string, query: Params) =>
    get<EntryPage>("/projects/{project}/sessions/{session}/entries", { project, session }, query),
  conversation: (project: string, session: string, query: Params) =>
    get<Conversation>(
      "/projects/{project}/sessions/{session}/conversation",
      { project, session },
      query,
    ),
  tree: (project: string, session: string) =>
    get<Tree>("/projects/{project}/sessions/{session}/tree", { project, session }),
  goto: (
    project: string,
    session: string,
    body: { entry: string; skip_files?: boolean; preview?: boolean; force?: boolean },
  ) => post<Navigation>("/projects/{project}/sessions/{session}/goto", { project, session }, body),
  fork: (project: string, session: string, body: { entry?: string; title?: string }) =>
    post<Session>("/projects/{project}/sessions/{session}/fork", { project, session }, body),
  label: (project: string, session: string, entry: string, label: string | null) =>
    put<Entry>(
      "/projects/{project}/sessions/{session}/entries/{entry}/label",
      { project, session, entry },
      { label },
    ),
  turns: (project: string, session: string) =>
    get<{ turns: TurnStatus[] }>("/projects/{project}/sessions/{session}/turns", {
      project,
      session,
    }),
  round: (project: string, session: string) =>
    get<RoundStatus>("/projects/{project}/sessions/{session}/round", { project, session }),
  rounds: (project: string, session: string) =>
    get<{ rounds: Round[] }>("/projects/{project}/sessions/{session}/rounds", {
      project,
      session,
    }),
  approve: (project: string, session: string) =>
    post<Approved>("/projects/{project}/sessions/{session}/approve", { project, session }, {}),
  reset: (project: string, session: string, body: { force?: boolean; preview?: boolean }) =>
    post<Reset>("/projects/{project}/sessions/{session}/reset", { project, session }, body),

  pending: (project: string, query: Params) =>
    get<Review>("/projects/{project}/pending", { project }, query),
  keep: (project: string, choice: Choice) =>
    post<Kept>("/projects/{project}/keep", { project }, choice),
  discard: (project: string, choice: Choice & { force?: boolean; preview?: boolean }) =>
    post<Discarded>("/projects/{project}/discard", { project }, choice),
  operations: (project: string, query: Params) =>
    get<{ operations: Operation[] }>("/projects/{project}/operations", { project }, query),
  undo: (project: string, body: { preview?: boolean; expect?: number }) =>
    post<RestoreResult>("/projects/{project}/undo", { project }, body),
  redo: (project: string, body: { preview?: boolean; expect?: number }) =>
    post<RestoreResult>("/projects/{project}/redo", { project }, body),

  checkpoints: (project: string, query: Params) =>
    get<Checkpoints>("/projects/{project}/checkpoints", { project }, query),
  takeCheckpoint: (project: string, message: string) =>
    post<Checkpoint>("/projects/{project}/checkpoints", { project }, { message }),
  checkpoint: (project: string, checkpoint: string) =>
    get<Checkpoint>("/projects/{project}/checkpoints/{checkpoint}", { project, checkpoint }),
  checkpointFiles: (project: string, checkpoint: string) =>
    get<{ files: TreeEntry[] }>("/projects/{project}/checkpoints/{checkpoint}/files", {
      project,
      checkpoint,
    }),
  restore: (
    project: string,
    checkpoint: string,
    body: { paths?: string[]; preview?: boolean; force?: boolean; keep_dirty?: boolean },
  ) =>
    post<RestoreResult>(
      "/projects/{project}/checkpoints/{checkpoint}/restore",
      { project, checkpoint },
      body,
    ),
  diff: (project: string, query: Params) =>
    get<{ files: FileChange[] }>("/projects/{project}/diff", { project }, query),
  file: (project: string, path: string) => text("/projects/{project}/file", { project }, { path }),
  fileAt: (project: string, checkpoint: string, path: string) =>
    text("/projects/{project}/checkpoints/{checkpoint}/file", { project, checkpoint }, { path }),

  search: (query: SearchQuery, signal?: AbortSignal) =>
    get<SearchResult>("/search", {}, { ...query, as_you_type: true }, signal),
  stats: (query: Params) => get<Stats>("/stats", {}, query),

  doctor: (project: string) =>
    get<{ findings: Finding[] }>("/projects/{project}/doctor", { project }),
  settings: (project: string) => get<SettingsRow>("/projects/{project}/settings", { project }),
  changeSettings: (project: string, body: SettingsChange) =>
    patch<SettingsRow>("/projects/{project}/settings", { project }, body),
  excludes: (project: string) => get<Excludes>("/projects/{project}/excludes", { project }),
  writeExcludes: (project: string, body: { text: string; version: string | null }) =>
    put<RestoreResult>("/projects/{project}/excludes", { project }, body),
  ruleFiles: (project: string) => get<RuleFiles>("/projects/{project}/trust", { project }),
  trust: (project: string, body: { path: string; sha256: string }) =>
    post<RuleFiles>("/projects/{project}/trust", { project }, body),
  distrust: (project: string) => remove<RuleFiles>("/projects/{project}/trust", { project }),
  sizes: () => get<HomeSizes>("/sizes"),
  projectSizes: (project: string) => get<ProjectSizes>("/projects/{project}/sizes", { project }),
  verify: (project: string, body: { repair?: boolean }) =>
    post<{ job: string }>("/projects/{project}/verify", { project }, body),
  gc: (project: string, body: { dry_run?: boolean }) =>
    post<{ job: string }>("/projects/{project}/gc", { project }, body),
  forget: (
    project: string,
    body: { keep_last?: number; older_than?: number; max_bytes?: number; dry_run?: boolean },
  ) => post<{ job: string }>("/projects/{project}/forget", { project }, body),
  importLogs: (agent: string) => post<{ job: string }>("/import", {}, { agent }),
  job: (job: string) => get<JobRow>("/jobs/{job}", { job }),
  cancelJob: (job: string) => remove<JobRow>("/jobs/{job}", { job }),
};

function get<T>(path: string, parts: Params = {}, query: Params = {}, signal?: AbortSignal) {
  return json<T>("GET", urlOf(path, parts, query), undefined, signal);
}

function post<T>(path: string, parts: Params, body: object) {
  return json<T>("POST", urlOf(path, parts), body);
}

function put<T>(path: string, parts: Params, body: object) {
  return json<T>("PUT", urlOf(path, parts), body);
}

function patch<T>(path: string, parts: Params, body: object) {
  return json<T>("PATCH", urlOf(path, parts), body);
}

function remove<T>(path: string, parts: Params) {
  return json<T>("DELETE", urlOf(path, parts));
}

async function text(path: string, parts: Params, query: Params): Promise<string> {
  return (await send("GET", urlOf(path, parts, query))).text();
}

async function json<T>(
  method: string,
  url: string,
  body?: object,
  signal?: AbortSignal,
): Promise<T> {
  return (await send(method, url, body, signal)).json() as Promise<T>;
}

async function send(method: string, url: string, body?: object, signal?: AbortSignal) {
  const init: RequestInit = { method, signal: signal ?? null };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new ApiError(
      "unreachable",
      "The server does not answer. Run `mulligan up`, then try again.",
      0,
    );
  }
  if (response.ok) return response;
  throw await errorOf(response);
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return new ApiError(error.code, error.message, response.status);
  } catch {
    return new ApiError(
      "failed",
      `The server answered with status ${response.status}. Try again.`,
      response.status,
    );
  }
}

function urlOf(path: string, parts: Params, query: Params = {}): string {
  const filled = path.replace(/{(\w+)}/g, (_, name: string) =>
    encodeURIComponent(String(parts[name])),
  );
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) asked.append(name, each);
    else if (value !== undefined && value !== null && value !== "") asked.set(name, String(value));
  }
  const rest = asked.toString();
  return `/api/v1${filled}${rest ? `?${rest}` : ""}`;
}
