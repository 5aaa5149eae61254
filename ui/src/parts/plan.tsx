/** What a restore would do, file by file, before it is done. */

import { useState } from "preact/hooks";
import type { RestorePlan } from "../api";
import { count } from "../words";
import { Path } from "./small";

const SHOWN = 40;

export function Plan({ plan }: { plan: RestorePlan }) {
  const dirty = new Set(plan.dirty);
  if (!changes(plan) && !plan.skipped.length) return <NoChange />;
  return (
    <div class="plan">
      {plan.root && (
        <p class="plan-note">
          In <Path path={plan.root} />
        </p>
      )}
      <Part
        title="Write"
        hint={plan.restored.length === 1 ? "as it was then" : "as they were then"}
        paths={plan.restored}
        dirty={dirty}
      />
      <Part title="Delete" hint="not there then" paths={plan.deleted} dirty={dirty} />
      {plan.skipped.length > 0 && (
        <section class="plan-part">
          <h3>
            Leave alone <span class="faint">{count(plan.skipped.length, "file")}</span>
          </h3>
          <ul>
            {plan.skipped.slice(0, SHOWN).map(({ path, reason }) => (
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
  return <p class="plan-nothing">No file would change: all is as it was then.</p>;
}

/** Whether anything would be done. */
export function changes(plan: RestorePlan): boolean {
  return plan.restored.length > 0 || plan.deleted.length > 0;
}

function Part(given: { title: string; hint: string; paths: string[]; dirty: Set<string> }) {
  const [all, setAll] = useState(false);
  if (!given.paths.length) return null;
  const shown = all ? given.paths : given.paths.slice(0, SHOWN);
  return (
    <section class="plan-part">
      <h3>
        {given.title}{" "}
        <span class="faint">
          {count(given.paths.length, "file")}, {given.hint}
        </span>
      </h3>
      <ul>
        {shown.map((path) => (
          <li key={path}>
            <Path path={path} />
            {given.dirty.has(path) && <span class="dirty">unsaved</span>}
          </li>
        ))}
      </ul>
      {shown.length < given.paths.length && (
        <button type="button" class="bare link" onClick={() => setAll(true)}>
          and {given.paths.length - shown.length} more
        </button>
      )}
    </section>
  );
}
