/** One row of a settings form: label, hint, control and note. */

import type { ComponentChildren } from "preact";

export function Setting(props: {
  label: string;
  hint?: ComponentChildren;
  /** Current state, such as why the setting cannot be changed here. */
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
