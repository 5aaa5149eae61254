/** Says that the server is gone, for as long as it is. */

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../parts/icons";
import { connection, retry } from "../live";

const SHOW_AFTER_MS = 700;

export function Connection() {
  const lost = connection.value === "lost";
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!lost) return setShown(false);
    // A server that restarts is back before anybody needs to know.
    const timer = window.setTimeout(() => setShown(true), SHOW_AFTER_MS);
    return () => clearTimeout(timer);
  }, [lost]);
  if (!shown) return null;
  return (
    <div class="lost" role="status">
      <Icon name="warning" />
      <span>
        The server is not there. What you see may be old. Run <code>mulligan up</code>, and open the
        address that it prints.
      </span>
      <button type="button" class="small" onClick={retry}>
        Try now
      </button>
    </div>
  );
}
