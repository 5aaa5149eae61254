import { Icon } from "./icons";

/** One of several, from a list that opens. */
export function Select(props: {
  label: string;
  value: string;
  options: [value: string, label: string][];
  choose: (value: string) => void;
  /** What is said before it, where the label alone is for those who do not see it. */
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
