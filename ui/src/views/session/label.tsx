/** The dialog that labels a message, so that the user finds it again. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icons";

export function LabelDialog(props: {
  entry: Entry;
  close: () => void;
  save: (label: string | null) => void;
}) {
  const [label, setLabel] = useState(props.entry.label ?? "");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const save = () => props.save(label.trim() || null);
  return (
    <Dialog
      title="Label this message"
      close={props.close}
      actions={
        <>
          <button type="button" class="button" onClick={props.close}>
            Cancel
          </button>
          <button type="button" class="button primary" onClick={save}>
            Save
          </button>
        </>
      }
    >
      <label class="field field-wide">
        <Icon name="label" size={14} />
        <span class="unseen">Label</span>
        <input
          ref={field}
          value={label}
          onInput={(event) => setLabel(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && save()}
        />
      </label>
    </Dialog>
  );
}
