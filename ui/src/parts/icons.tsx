/** Icons on a 16 px grid, in the colour of the surrounding text. */

const PATHS: Record<string, string> = {
  home: "M2.5 7.5 8 2.8l5.5 4.7M4 6.6V13h8V6.6",
  review: "M5.5 3.5v9M3 6l2.5-2.5L8 6M10.5 12.5v-9M8 10l2.5 2.5L13 10",
  checkpoints: "M8 2.5v3M8 10.5v3M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5Z",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4ZM10.2 10.2l3.3 3.3",
  statistics: "M3 13V9M6.5 13V3.5M10 13V7M13.5 13v-2.5",
  settings:
    "M2.5 5h5M11 5h2.5M2.5 11H5M8.5 11h5M9.2 3.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6ZM6.8 9.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z",
  session: "M3 3.5h10v7H7.5L4.5 13v-2.5H3Z",
  folder: "M2.5 4h4l1.5 1.7h5.5V12.5h-11Z",
  file: "M4 2.5h5l3 3v8H4ZM9 2.5v3h3",
  check: "m3.5 8.5 3 3 6-7",
  undo: "M3.2 6.2h6.3a3.4 3.4 0 1 1 0 6.8H6M5.8 3.4 3 6.2 5.8 9",
  redo: "M12.8 6.2H6.5a3.4 3.4 0 1 0 0 6.8H10M10.2 3.4 13 6.2 10.2 9",
  close: "m4 4 8 8M12 4l-8 8",
  up: "m4 9.5 4-4 4 4",
  down: "m4 6.5 4 4 4-4",
  right: "m6.5 4 4 4-4 4",
  more: "M4 8h.01M8 8h.01M12 8h.01",
  tool: "M9.8 6.2 3.5 12.5M9.5 3.2a3.2 3.2 0 0 1 3.3 3.3 3.2 3.2 0 0 1-4.3 1L7 6.2a3.2 3.2 0 0 1 1-3",
  terminal: "m3.5 5 3 3-3 3M8.5 11.5h4",
  edit: "m3 13 .6-2.7 7.2-7.2 2.1 2.1-7.2 7.2Z",
  branch: "M5 3v10M5 10.5c4 0 6-1.2 6-4.5M11 6a1.6 1.6 0 1 0 0-3.2A1.6 1.6 0 0 0 11 6Z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.8v1.4M8 12.8v1.4M1.8 8h1.4M12.8 8h1.4M3.6 3.6l1 1M11.4 11.4l1 1M12.4 3.6l-1 1M4.6 11.4l-1 1",
  moon: "M13 9.6A5.4 5.4 0 0 1 6.4 3 5.4 5.4 0 1 0 13 9.6Z",
  system: "M2.5 3.5h11v7.5h-11ZM6 13.5h4",
  help: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2ZM6.3 6.4a1.7 1.7 0 1 1 2.6 1.4c-.6.4-.9.7-.9 1.4M8 11.3h.01",
  warning: "M8 2.8 14 13H2ZM8 6.8v2.8M8 11.3h.01",
  split: "M2.5 3.5h11v9h-11ZM8 3.5v9",
  unified: "M2.5 3.5h11v9h-11ZM2.5 6.5h11M2.5 9.5h11",
  label: "M2.8 2.8h5l5.4 5.4-5 5-5.4-5.4ZM5.5 5.5h.01",
};

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}

/** Mulligan's logo. */
export function Sign({ size = 24 }: { size?: number }) {
  return (
    <svg class="sign" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M9.5 12.2A8 8 0 1 1 8 17M9 6.8v6h6" />
      <circle cx="16" cy="17" r="2.6" />
    </svg>
  );
}
