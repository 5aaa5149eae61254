import { Segments } from "./small";

export type Columns = "unified" | "split";

/** The preference that the review and the comparisons share. */
export const COLUMNS_PREFERENCE = "review-side";

/** Buttons to show a diff in one column or side by side. */
export function ColumnsChoice(props: { value: Columns; choose: (columns: Columns) => void }) {
  return (
    <Segments
      label="Columns"
      value={props.value}
      choose={props.choose}
      options={[
        { value: "unified", label: "One column", icon: "unified" },
        { value: "split", label: "Side by side", icon: "split" },
      ]}
    />
  );
}
