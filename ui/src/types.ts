/**
 * What the server answers with. Names of types and fields are those of the OpenAPI document; a test
 * compares them.
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
  auto_approve_commands: boolean;
  auto_approve_sensitive_edits: boolean;
  /** In their order; the last that fits a file decides, and true is "without asking". */
  sensitive_file_patterns: Record<string, boolean>;
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
  off_path: boolean;
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
  parent_entry: string | null;
  entries: number;
  active: boolean;
}

/** Without `cleared`, what would go, and the word that has it go. */
export interface Cleared {
  cleared: boolean;
  sessions: number;
  entries: number;
  confirm: string | null;
}

export interface Tree {
  branches: Branch[];
  leaf: string | null;
  /** Whether the session was moved to its leaf without the files. */
  files_skipped: boolean;
}

export interface Skip {
  path: string;
  reason: string;
}

export interface RestoreResult {
  kind: string;
  operation: number | null;
  safety_checkpoint: string | null;
  new_checkpoint: string | null;
  target: string | null;
  undoes: number | null;
  undoes_kind: string | null;
  restored: string[];
  deleted: string[];
  skipped: Skip[];
  dirty: string[];
  rescued: string[];
  verified: boolean;
  preview: boolean;
  root: string | null;
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
  operation: number | null;
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
  changed_by: string[];
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
  passed_over: { path: string; reason: string; broken: boolean }[];
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

export interface SearchResult {
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
  fix: string | null;
}

export interface SettingsRow {
  max_file_size: number;
  guard: boolean;
  guard_file_size: number;
  guard_total_size: number;
  keep_on_commit: boolean;
  tell_rejections: boolean;
  strict: boolean;
  keep_last: number;
  keep_days: number;
  keep_size: number;
  /** Where each that is not the default comes from: `home`, `set` or `project`. */
  origins: Record<string, string>;
}

/** A rule file of the project that weakens something, or is broken. */
export interface ProjectRuleFile {
  path: string;
  accepted: boolean;
  weakens: string[];
  problem: string | null;
  content: string;
  sha256: string | null;
}

export interface RuleFiles {
  files: ProjectRuleFile[];
}

export interface DefaultExclude {
  pattern: string;
  note: string;
  left_out: boolean;
  files: number;
}

export interface Excludes {
  text: string;
  version: string | null;
  defaults: DefaultExclude[];
  single_files: number;
}

export interface Sizes {
  project: string;
  root: string;
  contents: number;
  journal: number;
  search: number;
  indexes: number;
  other: number;
  total: number;
}

export interface HomeSizes {
  projects: Sizes[];
  free: number;
}

export interface ProjectSizes {
  sizes: Sizes;
  objects: number;
  stored: number;
}

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
