/** The preview of a restore: which files it writes, deletes and skips. */

import { useState } from "preact/hooks";
import type { RestoreResult } from "../api";
import { count } from "../format";
import { Path } from "./small";

const MAX_SHOWN_PATHS = 40;

export function Plan({ plan }: { plan: RestoreResult }) {
  const dirty = new Set(plan.dirty);
  if (!hasChanges(plan) && !plan.skipped.length) return <NoChange />;
  return (
    <div class="plan">
      {plan.root && (
        <p class="plan-note">
          In <Path path={plan.root} />
        </p>
      )}
      <PathList
        title="Write"
        hint={plan.restored.length === 1 ? "as it was then" : "as they were then"}
        paths={plan.restored}
        dirty={dirty}
      />
      <PathList title="Delete" hint="did not exist then" paths={plan.deleted} dirty={dirty} />
      {plan.skipped.length > 0 && (
        <section class="plan-part">
          <h3>
            Leave alone <span class="faint">{count(plan.skipped.length, "file")}</span>
          </h3>
          <ul>
            {plan.skipped.slice(0, MAX_SHOWN_PATHS).map(({ path, reason }) => (
              <li key={path}>
                <Path path={path} />
                <span class="plan-reason">{reason}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {plan.dirty.length > 0 && (
        <p class="plan-note">
          {count(plan.dirty.length, "file")} marked <span class="dirty">unsaved</span>{" "}
          {plan.dirty.length === 1 ? "is" : "are"} in no checkpoint yet. A safety checkpoint is
          taken first, and undo brings {plan.dirty.length === 1 ? "it" : "them"} back.
        </p>
      )}
    </div>
  );
}

export function NoChange() {
  return <p class="plan-nothing">No file would change: all files already have this content.</p>;
}

/** Return true if the plan writes or deletes any file. */
export function hasChanges(plan: RestoreResult): boolean {
  return plan.restored.length > 0 || plan.deleted.length > 0;
}

function PathList(props: { title: string; hint: string; paths: string[]; dirty: Set<string> }) {
  const [all, setAll] = useState(false);
  if (!props.paths.length) return null;
  const shown = all ? props.paths : props.paths.slice(0, MAX_SHOWN_PATHS);
  return (
    <section class="plan-part">
      <h3>
        {props.title}{" "}
        <span class="faint">
          {count(props.paths.length, "file")}, {props.hint}
        </span>
      </h3>
      <ul>
        {shown.map((path) => (
          <li key={path}>
            <Path path={path} />
            {props.dirty.has(path) && <span class="dirty">unsaved</span>}
          </li>
        ))}
      </ul>
      {shown.length < props.paths.length && (
        <button type="button" class="bare link" onClick={() => setAll(true)}>
          and {props.paths.length - shown.length} more
        </button>
      )}
    </section>
  );
}
