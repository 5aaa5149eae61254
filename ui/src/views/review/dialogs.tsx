/** What the review says when there is nothing to do, and before it does everything. */

import type { PendingHunk } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Empty, Key } from "../../parts/small";
import { to } from "../../router";
import { count } from "../../words";

export function Nothing() {
  return (
    <Empty icon="check" title="All decided">
      <p>
        Nothing waits for you. When an agent changes files, each change appears here: <Key>y</Key>{" "}
        keeps it, <Key>n</Key> undoes it, <Key>u</Key> takes the last decision back.
      </p>
      <p>
        <a class="button" href={to("home")}>
          See the sessions
        </a>
      </p>
    </Empty>
  );
}

export function ConfirmAll(given: {
  what: "keep" | "undo";
  hunks: PendingHunk[];
  files: string;
  close: () => void;
  run: () => void;
}) {
  const keep = given.what === "keep";
  return (
    <Dialog
      title={keep ? "Keep everything?" : "Undo everything?"}
      close={given.close}
      actions={
        <>
          <button type="button" class="button" onClick={given.close}>
            Cancel
          </button>
          <button
            type="button"
            class={keep ? "button primary" : "button danger"}
            onClick={given.run}
            autofocus
          >
            {keep ? "Keep" : "Undo"} {count(given.hunks.length, "change")}
          </button>
        </>
      }
    >
      <p>
        {count(given.hunks.length, "change")} in {given.files}.{" "}
        {keep
          ? "The files stay as they are, and nothing of it is pending any more."
          : "The files go back to what they were before the agents' work. What you changed yourself stays."}
      </p>
      <p class="faint">Either can be taken back with one undo.</p>
    </Dialog>
  );
}
