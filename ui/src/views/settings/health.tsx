/** The findings of `mulligan doctor`, worst first, each with its fix. */

import { api, type Finding } from "../../api";
import { formatDateTime } from "../../format";
import { Icon } from "../../parts/icons";
import { ErrorBox, Skeleton } from "../../parts/small";
import { useResource } from "../../resource";

/** Times in the server's texts, to be shown in the user's locale. */
const MOMENT = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const ICONS: Record<string, string> = { ok: "check", note: "more", problem: "warning" };

export function Health({ project }: { project: string }) {
  const doctor = useResource(
    () => api.doctor(project),
    [project],
    (event) => event.project === project && event.kind === "operation",
  );
  const order = (finding: Finding) => ["problem", "note", "ok"].indexOf(finding.level);
  return (
    <section class="panel" id="health">
      <h2>Health</h2>
      {doctor.problem ? (
        <ErrorBox problem={doctor.problem} retry={() => void doctor.reload()} />
      ) : !doctor.data ? (
        <Skeleton lines={5} height={28} flush />
      ) : (
        <ul class="findings">
          {[...doctor.data.findings]
            .sort((a, b) => order(a) - order(b))
            .map((each, at) => (
              <li key={at} class={`finding finding-${each.level}`}>
                <Icon name={ICONS[each.level] ?? "more"} />
                <span class="finding-subject">{each.subject}</span>
                <span class="finding-text">
                  {each.message.replace(MOMENT, formatDateTime)}
                  {each.fix && <small class="faint">{each.fix}</small>}
                </span>
              </li>
            ))}
        </ul>
      )}
    </section>
  );
}
