/** The empty review, and the question before deciding on all changes. */

import type { PendingHunk } from "../../api";
import { count } from "../../format";
import { Dialog } from "../../parts/dialog";
import { EmptyState, Key } from "../../parts/small";
import { urlFor } from "../../router";

export function Nothing() {
  return (
    <EmptyState icon="check" title="Nothing to review">
      <p>
        Every change is decided. When an agent changes files, each change appears here: <Key>y</Key>{" "}
        keeps it, <Key>n</Key> undoes it, <Key>u</Key> takes the last decision back.
      </p>
      <p>
        <a class="button" href={urlFor("home")}>
          See the sessions
        </a>
      </p>
    </EmptyState>
  );
}

export function ConfirmAll(props: {
  what: "keep" | "undo";
  hunks: PendingHunk[];
  files: string;
  close: () => void;
  run: () => void;
}) {
  const keep = props.what === "keep";
  return (
    <Dialog
      title={keep ? "Keep everything?" : "Undo everything?"}
      close={props.close}
      actions={
        <>
          <button type="button" class="button" onClick={props.close}>
            Cancel
          </button>
          <button
            type="button"
            class={keep ? "button primary" : "button danger"}
            onClick={props.run}
            autofocus
          >
            {keep ? "Keep" : "Undo"} {count(props.hunks.length, "change")}
          </button>
        </>
      }
    >
      <p>
        {count(props.hunks.length, "change")} in {props.files}.{" "}
        {keep
          ? "The files stay as they are, and these changes leave the review."
          : "The files go back to their content before the agents' work. Your own changes stay."}
      </p>
      <p class="faint">You can take this back in one step.</p>
    </Dialog>
  );
}
