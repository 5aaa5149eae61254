/** The pane beside the conversation: branches, and facts about the session. */

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "../../api";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icons";
import { ErrorBox, Skeleton } from "../../parts/small";
import { About } from "./about";
import type { useGraph } from "./graph";
import { Tree } from "./tree";

export function Side(props: {
  project: string;
  session: Session | undefined;
  graph: ReturnType<typeof useGraph>;
  selected: string | null;
  /** True if the pane is open as a drawer, in a narrow window. */
  drawer: boolean;
  close: () => void;
}) {
  const { project, session, graph, drawer } = props;
  const pane = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!drawer) return undefined;
    const before = document.activeElement;
    const below = document.querySelectorAll<HTMLElement>(".rail, .session > .bar, .session-pane");
    for (const each of below) each.inert = true;
    pane.current?.focus();
    return () => {
      for (const each of below) each.inert = false;
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [drawer]);
  return (
    <>
      {drawer && <Shade close={props.close} />}
      <div
        ref={pane}
        class={drawer ? "session-side is-open" : "session-side"}
        aria-label="Branches"
        tabIndex={-1}
        role={drawer ? "dialog" : "complementary"}
        aria-modal={drawer ? "true" : undefined}
      >
        <header class="side-head">
          <h2>Branches</h2>
          <button type="button" class="bare drawer-close" aria-label="Close" onClick={props.close}>
            <Icon name="close" />
          </button>
        </header>
        {graph.problem ? (
          <ErrorBox problem={graph.problem} />
        ) : graph.drawn && session ? (
          <Tree
            graph={graph.drawn}
            project={project}
            session={session.session}
            selected={props.selected}
            onChoose={props.close}
          />
        ) : (
          <Skeleton lines={4} height={40} />
        )}
        {session && <About project={project} session={session} />}
      </div>
    </>
  );
}

/** The dimmed area under the drawer; a click on it or Escape closes the drawer. */
function Shade({ close }: { close: () => void }) {
  useKeys("Branches", [{ key: "Escape", does: "close the branches", run: close }], {
    modal: true,
  });
  return <div class="drawer-shade" onClick={close} />;
}
