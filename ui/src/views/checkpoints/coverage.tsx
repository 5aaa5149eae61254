/** What a checkpoint does not hold, and why. */

import type { Coverage as CoverageOf } from "../../api";
import { count } from "../../format";
import { Icon } from "../../parts/icons";
import { Path } from "../../parts/small";

export function Coverage({ of }: { of: CoverageOf }) {
  return (
    <div class="page-scroll" tabIndex={0} role="group" aria-label="Coverage">
      <div class="coverage">
        <p class="coverage-word">
          <Icon name={of.complete ? "check" : "warning"} />
          {of.complete
            ? "Everything that is in scope is in this checkpoint."
            : `${count(of.skipped.length, "path")} in scope could not be read and are missing.`}
          {of.guarded > 0 &&
            ` ${count(of.guarded, "small ignored file")} (such as .env) are kept as copies.`}
        </p>
        {of.skipped.length > 0 && (
          <section class="plan-part">
            <h3>Missing</h3>
            <ul>
              {of.skipped.map((each) => (
                <li key={each.path}>
                  <Path path={each.path} />
                  <span class="plan-reason">{each.reason}</span>
                </li>
              ))}
            </ul>
          </section>
        )}
        {of.excluded.length > 0 && (
          <section class="plan-part">
            <h3>
              Excluded by rules <span class="faint">never restored, never deleted</span>
            </h3>
            <ul>
              {of.excluded.map((each) => (
                <li key={each.path}>
                  <Path path={each.path} />
                  <span class="plan-reason">
                    {count(each.files, "file")}, {each.reason}
                  </span>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}
