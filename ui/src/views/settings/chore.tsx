/** One thing that can be done, with what it is for and how far it is. */

import type { ComponentChildren } from "preact";
import type { JobRow } from "../../api";
import { Progress } from "./jobs";

export function Chore(given: {
  title: string;
  about: string;
  job: JobRow | null;
  told: (result: unknown) => string;
  children: ComponentChildren;
}) {
  return (
    <div class="chore">
      <div class="chore-words">
        <h3>{given.title}</h3>
        <p class="faint">{given.about}</p>
        <Progress job={given.job} told={given.told} />
      </div>
      <div class="chore-acts">{given.children}</div>
    </div>
  );
}
