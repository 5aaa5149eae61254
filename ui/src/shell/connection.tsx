/** A notice above all views while the server cannot be reached. */

import { useEffect, useState } from "preact/hooks";
import { connection, retry } from "../live";
import { Icon } from "../parts/icons";

const SHOW_AFTER_MS = 700;

export function Connection() {
  const lost = connection.value === "lost";
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!lost) return setShown(false);
    // Say nothing if the server only restarts.
    const timer = window.setTimeout(() => setShown(true), SHOW_AFTER_MS);
    return () => clearTimeout(timer);
  }, [lost]);
  if (!shown) return null;
  return (
    <div class="lost" role="status">
      <Icon name="warning" />
      <span>
        The server cannot be reached. This page may be out of date. Run <code>mulligan up</code> and
        open the address that it prints.
      </span>
      <button type="button" class="small" onClick={retry}>
        Try now
      </button>
    </div>
  );
}
