/**
 * The one way to the server: every request that the page makes, with the types of its answers.
 *
 * Names of types and paths are those of the OpenAPI document; a test compares them.
 */

export interface Health {
  ok: boolean;
  version: string;
  pid: number;
  home: string;
  started_at: string;
}

export interface PendingStats {
  additions: number;
  deletions: number;
  files: number;
}

export interface ProjectRow {
  project: string;
  root: string;
  name: string;
  exists: boolean;
  imported: boolean;
  sessions: number;
  checkpoints: number;
  updated_at: string | null;
  problem: string | null;
  pending?: Record<string, PendingStats>;
}

export interface Session {
  session: string;
  agent: string;
  title: string;
  model: string | null;
  mode: string | null;
  status: string;
  leaf: string | null;
  forked_from: string | null;
  source: string | null;
  created_at: string;
  updated_at: string;
  pending?: PendingStats | null;
}

export interface Sessions {
  sessions: Session[];
  has_more: boolean;
  next_cursor: string | null;
  next_offset: number | null;
}

export interface Entry {
  entry: string;
  session: string;
  seq: number;
  parent: string | null;
  type: string;
  created_at: string;
  content: string;
  data: Record<string, unknown> | null;
  model: string | null;
  checkpoint: string | null;
  is_compacted: boolean;
  aside: boolean;
  label: string | null;
  branch: number;
}

export interface EntryPage {
  entries: Entry[];
  has_more: boolean;
  next_seq: number | null;
}

export interface Conversation {
  entries: Entry[];
  has_more: boolean;
  next_before: number | null;
}

export interface Branch {
  first: Entry;
  last: Entry;
  springs_from: string | null;
  entries: number;
  active: boolean;
}

export interface Tree {
  branches: Branch[];
  leaf: string | null;
}

export interface Skip {
  path: string;
  reason: string;
}

export interface RestorePlan {
  target: string | null;
  restored: string[];
  deleted: string[];
  skipped: Skip[];
  dirty: string[];
  preview?: boolean;
}

export interface RestoreResult extends RestorePlan {
  kind: string;
  operation: number | null;
  safety_checkpoint: string | null;
  new_checkpoint: string | null;
  undoes: number | null;
  rescued: string[];
  verified: boolean;
}

export interface Navigation {
  session: string;
  old_leaf: string | null;
  new_leaf: string | null;
  text: string | null;
  summary_entry: string | null;
  skip_files: boolean;
  preview: boolean;
  files: RestoreResult | null;
}

export interface TurnFile {
  path: string;
  action: string;
  status: string;
  additions: number;
  deletions: number;
}

export interface TurnStatus {
  session: string;
  turn: number;
  operation: number;
  checkpoint: string | null;
  status: string;
  files: TurnFile[];
}

export interface RoundStatus {
  session: string;
  round: string;
  has_unapproved: boolean;
  last_approved_at: string | null;
  changed_files: FileChange[];
}

export interface Round {
  name: string;
  status: string;
  created_at: string;
  closed_at: string | null;
  approved_checkpoint: string | null;
  checkpoints: number;
}

export interface Approved {
  session: string;
  approved_checkpoint: string;
  new_round: string;
  checkpoints: number;
  operation: number;
}

export interface Reset {
  session: string;
  reset_to: string | null;
  new_round: string;
  safety_checkpoint: string | null;
  files: RestoreResult;
}

export interface PendingHunk {
  hunk: string;
  session: string;
  path: string;
  kind: string;
  old_start: number;
  new_start: number;
  old_lines: string[];
  new_lines: string[];
  mixed: boolean;
  turns: number[];
  additions: number;
  deletions: number;
}

export interface PendingFile {
  session: string;
  path: string;
  status: string;
  is_binary: boolean;
  is_too_large: boolean;
  old_mode: string | null;
  new_mode: string | null;
  hunks: PendingHunk[];
  additions: number;
  deletions: number;
}

export interface Review {
  files: PendingFile[];
  total: number;
  additions: number;
  deletions: number;
}

export interface Kept {
  operations: number[];
  hunks: string[];
  files: string[];
}

export interface Discarded {
  hunks: string[];
  conflicts: string[];
  results: RestoreResult[];
}

export interface Operation {
  operation: number;
  kind: string;
  state: string;
  changed: boolean;
  created_at: string;
  session: string | null;
  undoes: number | null;
}

export interface Coverage {
  complete: boolean;
  skipped: Skip[];
  excluded: { path: string; files: number; reason: string }[];
  guarded: number;
}

export interface Changes {
  added: number;
  modified: number;
  deleted: number;
}

export interface Checkpoint {
  checkpoint: string;
  tree: string;
  kind: string;
  message: string;
  created_at: string;
  files: number;
  bytes: number;
  session: string | null;
  entry: string | null;
  coverage: Coverage;
  changes?: Changes | null;
}

export interface Checkpoints {
  checkpoints: Checkpoint[];
  has_more: boolean;
  next_before: string | null;
}

export interface TreeEntry {
  path: string;
  kind: string;
  mode: string;
  size: number;
  id: string;
  guarded: boolean;
}

export interface FileChange {
  path: string;
  status: string;
  additions: number;
  deletions: number;
  diff: string | null;
  base_content: string | null;
  is_binary: boolean;
  is_too_large: boolean;
  old_path: string | null;
  old_mode: string | null;
  new_mode: string | null;
  patch?: string;
}

export interface Hit {
  project: string;
  session: string;
  title: string;
  agent: string;
  entry: string;
  seq: number;
  type: string;
  created_at: string;
  checkpoint: string | null;
  score: number;
  snippet: string;
}

export interface Found {
  query: string;
  hits: Hit[];
  total: number | null;
  problems: string[];
}

export interface StatsRow {
  calls: number;
  success: number;
  failure: number;
  unknown: number;
  success_rate: number | null;
  average_ms: number | null;
  p95_ms: number | null;
}

export type StatsKeyed = StatsRow & Record<string, string>;

export interface Stats {
  by: string[];
  rows: StatsKeyed[];
  total: StatsRow;
  problems: string[];
}

export interface Finding {
  level: string;
  subject: string;
  message: string;
  mend: string | null;
}

export type SettingsRow = Record<string, number | boolean | string>;

export interface JobRow {
  job: string;
  kind: string;
  project: string | null;
  state: "running" | "done" | "failed" | "cancelled";
  stage: string;
  done: number;
  total: number | null;
  result: unknown;
  error: { code: string; message: string } | null;
}

/** What the server refused, or that it could not be reached (`code` is then `unreachable`). */
export class Problem extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

type Value = string | number | boolean | null | undefined;
type Given = Record<string, Value | readonly string[]>;

/** Whether requests may name a choice: an empty one means everything only with `all`. */
export interface Choice {
  hunks?: string[];
  paths?: string[];
  session?: string;
  turn?: number;
  all?: boolean;
}

export interface SearchQuery extends Given {
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
  openProject: (path: string) => post<ProjectRow>("/projects", {}, { path }),

  sessions: (project: string, query: Given) =>
    get<Sessions>("/projects/{project}/sessions", { project }, query),
  session: (project: string, session: string) =>
    get<Session>("/projects/{project}/sessions/{session}", { project, session }),
  changeSession: (project: string, session: string, body: Given) =>
    patch<Session>("/projects/{project}/sessions/{session}", { project, session }, body),
  deleteSession: (project: string, session: string) =>
    remove<Session>("/projects/{project}/sessions/{session}", { project, session }),
  entries: (project: string, session: string, query: Given) =>
    get<EntryPage>("/projects/{project}/sessions/{session}/entries", { project, session }, query),
  conversation: (project: string, session: string, query: Given) =>
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

  pending: (project: string, query: Given) =>
    get<Review>("/projects/{project}/pending", { project }, query),
  keep: (project: string, choice: Choice) =>
    post<Kept>("/projects/{project}/keep", { project }, choice),
  discard: (project: string, choice: Choice & { force?: boolean; preview?: boolean }) =>
    post<Discarded>("/projects/{project}/discard", { project }, choice),
  operations: (project: string, query: Given) =>
    get<{ operations: Operation[] }>("/projects/{project}/operations", { project }, query),
  undo: (project: string, body: { preview?: boolean; force?: boolean }) =>
    post<RestoreResult>("/projects/{project}/undo", { project }, body),
  redo: (project: string, body: { preview?: boolean; force?: boolean }) =>
    post<RestoreResult>("/projects/{project}/redo", { project }, body),

  checkpoints: (project: string, query: Given) =>
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
  diff: (project: string, query: Given) =>
    get<{ files: FileChange[] }>("/projects/{project}/diff", { project }, query),
  file: (project: string, path: string) => text("/projects/{project}/file", { project }, { path }),
  fileThen: (project: string, checkpoint: string, path: string) =>
    text("/projects/{project}/checkpoints/{checkpoint}/file", { project, checkpoint }, { path }),

  search: (query: SearchQuery, signal?: AbortSignal) =>
    get<Found>("/search", {}, { ...query, as_you_type: true }, signal),
  stats: (query: Given) => get<Stats>("/stats", {}, query),

  doctor: (project: string) =>
    get<{ findings: Finding[] }>("/projects/{project}/doctor", { project }),
  settings: (project: string) => get<SettingsRow>("/projects/{project}/settings", { project }),
  changeSettings: (project: string, body: SettingsRow) =>
    patch<SettingsRow>("/projects/{project}/settings", { project }, body),
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

function get<T>(path: string, parts: Given = {}, query: Given = {}, signal?: AbortSignal) {
  return json<T>("GET", address(path, parts, query), undefined, signal);
}

function post<T>(path: string, parts: Given, body: object) {
  return json<T>("POST", address(path, parts), body);
}

function put<T>(path: string, parts: Given, body: object) {
  return json<T>("PUT", address(path, parts), body);
}

function patch<T>(path: string, parts: Given, body: object) {
  return json<T>("PATCH", address(path, parts), body);
}

function remove<T>(path: string, parts: Given) {
  return json<T>("DELETE", address(path, parts));
}

async function text(path: string, parts: Given, query: Given): Promise<string> {
  return (await answer("GET", address(path, parts, query))).text();
}

async function json<T>(
  method: string,
  url: string,
  body?: object,
  signal?: AbortSignal,
): Promise<T> {
  return (await answer(method, url, body, signal)).json() as Promise<T>;
}

async function answer(method: string, url: string, body?: object, signal?: AbortSignal) {
  const init: RequestInit = { method, signal: signal ?? null };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  let found: Response;
  try {
    found = await fetch(url, init);
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Problem("unreachable", "The server does not answer. The page tries again.", 0);
  }
  if (found.ok) return found;
  throw await refusal(found);
}

async function refusal(found: Response): Promise<Problem> {
  try {
    const { error } = (await found.json()) as { error: { code: string; message: string } };
    return new Problem(error.code, error.message, found.status);
  } catch {
    return new Problem("failed", `The server answered ${found.status}.`, found.status);
  }
}

function address(path: string, parts: Given, query: Given = {}): string {
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
