/** Something that can be set: what it is, what it means, and the way to set it. */

import type { ComponentChildren } from "preact";

export function Setting(given: {
  label: string;
  hint?: ComponentChildren;
  /** What else is to be known just now, such as why it cannot be set here. */
  note?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="setting">
      <label class="setting-label">
        <span class="setting-words">
          {given.label}
          {given.hint && <small class="faint">{given.hint}</small>}
        </span>
        {given.children}
      </label>
      {given.note && <div class="setting-note">{given.note}</div>}
    </div>
  );
}

export function Switch(given: {
  on: boolean;
  disabled?: boolean;
  label?: string;
  change: (on: boolean) => void;
}) {
  return (
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label={given.label}
      disabled={given.disabled}
      checked={given.on}
      onChange={(event) => given.change(event.currentTarget.checked)}
    />
  );
}
