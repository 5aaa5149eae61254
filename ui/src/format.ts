/** Format numbers, times and names for reading. */

const UNITS: [number, number, Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [86_400 * 30, 86_400, "day"],
  [86_400 * 365, 86_400 * 30, "month"],
  [Infinity, 86_400 * 365, "year"],
];
const agoFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const dateTimeFormat = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
});
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function formatAgo(moment: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  if (Number.isNaN(seconds)) return moment;
  if (seconds < 10) return "just now";
  const [, size, unit] = UNITS.find(([limit]) => seconds < limit)!;
  // Count calendar days, to agree with the date headings of lists.
  if (unit === "day") return agoFormat.format(-daysBetween(new Date(moment), new Date(now)), unit);
  return agoFormat.format(-Math.floor(seconds / size), unit);
}

export function formatDateTime(moment: string): string {
  return formatted(dateTimeFormat, moment);
}

export function formatTime(moment: string): string {
  return formatted(timeFormat, moment);
}

/** Format a time; return text that is not a date unchanged, because `format` would throw. */
function formatted(format: Intl.DateTimeFormat, moment: string): string {
  const at = Date.parse(moment);
  return Number.isNaN(at) ? moment : format.format(at);
}

export function formatDay(moment: string): string {
  const date = new Date(moment);
  const days = daysBetween(date, new Date());
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return date.toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
}

const numberFormat = new Intl.NumberFormat("en");

export function formatNumber(number: number): string {
  return number < 1000 && Number.isInteger(number) ? String(number) : numberFormat.format(number);
}

export function count(number: number, word: string, many = `${word}s`): string {
  return `${formatNumber(number)} ${number === 1 ? word : many}`;
}

const SIZES = ["B", "KB", "MB", "GB", "TB"];

export function formatSize(bytes: number): string {
  let unit = 0;
  while (bytes >= 1024 && unit < SIZES.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${formatNumber(Number(bytes.toFixed(bytes < 100 ? 1 : 0)))} ${SIZES[unit]}`;
}

/** Parse a size such as `1.5 GB` into bytes; null if it is not a size. */
export function parseSize(text: string): number | null {
  const match = /^\s*([\d,]+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$/i.exec(text);
  if (!match) return null;
  const unit = SIZES.indexOf(`${match[2]!.toUpperCase()}B`);
  return Math.round(Number(match[1]!.replaceAll(",", "")) * 1024 ** unit);
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${(milliseconds / 60_000).toFixed(1)} min`;
}

/** Return the first line of a text, cut to `limit` characters. */
export function firstLine(text: string, limit = 120): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** Split a path into its folder (with the slash) and its name. */
export function splitPath(path: string): [string, string] {
  const cut = path.lastIndexOf("/") + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

const STATUSES: Record<string, string> = {
  starting: "starting",
  running: "working",
  waiting_input: "waiting for you",
  paused: "paused",
  stopped: "ended",
};

export function statusLabel(name: string): string {
  return STATUSES[name] ?? name;
}

/** Turn the API's `session_2` into “Round 2”. */
export function roundName(name: string): string {
  return name.replace(/^session_/, "Round ");
}

function daysBetween(one: Date, other: Date): number {
  return Math.round((startOfDay(other) - startOfDay(one)) / 86_400_000);
}

function startOfDay(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
