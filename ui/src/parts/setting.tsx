/** Something that can be set: what it is, what it means, and the way to set it. */

import type { ComponentChildren } from "preact";

export function Setting(props: {
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
          {props.label}
          {props.hint && <small class="faint">{props.hint}</small>}
        </span>
        {props.children}
      </label>
      {props.note && <div class="setting-note">{props.note}</div>}
    </div>
  );
}

export function Switch(props: {
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
      aria-label={props.label}
      disabled={props.disabled}
      checked={props.on}
      onChange={(event) => props.change(event.currentTarget.checked)}
    />
  );
}
