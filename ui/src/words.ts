/** Numbers, times and names as people say them. */

const UNITS: [number, number, Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [86_400 * 30, 86_400, "day"],
  [86_400 * 365, 86_400 * 30, "month"],
  [Infinity, 86_400 * 365, "year"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function ago(moment: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  if (seconds < 10) return "just now";
  const [, size, unit] = UNITS.find(([limit]) => seconds < limit)!;
  return relative.format(-Math.floor(seconds / size), unit);
}

export function when(moment: string): string {
  return exact.format(new Date(moment));
}

export function time(moment: string): string {
  return clock.format(new Date(moment));
}

export function day(moment: string): string {
  const date = new Date(moment);
  const days = Math.round((startOfDay(new Date()) - startOfDay(date)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return date.toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
}

export function count(number: number, word: string, many = `${word}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? word : many}`;
}

export function size(bytes: number): string {
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (bytes < 1024) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1024;
  }
  return `${bytes.toFixed(1)} TB`;
}

export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${(milliseconds / 60_000).toFixed(1)} min`;
}

/** The first line of a text, at most so long. */
export function gist(text: string, limit = 120): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** A path in two parts: the folder with its slash, and the name. */
export function parted(path: string): [string, string] {
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

export function status(name: string): string {
  return STATUSES[name] ?? name;
}

function startOfDay(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
