import { Icon } from "./icons";

/** One of several, from a list that opens. */
export function Select(given: {
  label: string;
  value: string;
  options: [value: string, label: string][];
  choose: (value: string) => void;
  /** What is said before it, where the label alone is for those who do not see it. */
  lead?: string;
  class?: string;
}) {
  return (
    <label class={`field select ${given.class ?? "field-small"}`}>
      <span class={given.lead ? undefined : "unseen"}>{given.lead ?? given.label}</span>
      <select
        aria-label={given.label}
        value={given.value}
        onChange={(event) => given.choose(event.currentTarget.value)}
      >
        {given.options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <Icon name="down" size={12} />
    </label>
  );
}
