/** A modal dialog; the browser's `<dialog>` traps the focus and handles Escape. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useKeys, type Binding } from "../keys";
import { Icon } from "./icons";

const NO_KEYS: Binding[] = [];

export function Dialog(props: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const title = useId();
  useKeys(props.title, NO_KEYS, { modal: true });
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.close();
      }}
      onClick={(event) => event.target === element.current && props.close()}
    >
      <div class="dialog-inside">
        <header class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <button type="button" class="bare" aria-label="Close" onClick={props.close}>
            <Icon name="close" />
          </button>
        </header>
        <div class="dialog-body" tabIndex={0} role="group" aria-label={props.title}>
          {props.children}
        </div>
        {props.actions && <footer class="dialog-foot">{props.actions}</footer>}
      </div>
    </dialog>
  );
}
