/** One maintenance task: title, description, progress and buttons. */

import type { ComponentChildren } from "preact";
import type { JobRow } from "../../api";
import { Progress } from "./jobs";

export function MaintenanceTask(props: {
  title: string;
  about: string;
  job: JobRow | null;
  resultText: (result: unknown) => string;
  children: ComponentChildren;
}) {
  return (
    <div class="chore">
      <div class="chore-words">
        <h3>{props.title}</h3>
        <p class="faint">{props.about}</p>
        <Progress job={props.job} resultText={props.resultText} />
      </div>
      <div class="chore-acts">{props.children}</div>
    </div>
  );
}
