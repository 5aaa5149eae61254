import { Icon } from "./icons";

/** A drop-down list. */
export function Select(props: {
  label: string;
  value: string;
  options: [value: string, label: string][];
  choose: (value: string) => void;
  /** Visible text before the list; without it the label is for screen readers only. */
  lead?: string;
  class?: string;
}) {
  return (
    <label class={`field select ${props.class ?? "field-small"}`}>
      <span class={props.lead ? undefined : "unseen"}>{props.lead ?? props.label}</span>
      <select
        aria-label={props.label}
        value={props.value}
        onChange={(event) => props.choose(event.currentTarget.value)}
      >
        {props.options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <Icon name="down" size={12} />
    </label>
  );
}
