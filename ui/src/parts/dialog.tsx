/** A dialog in the middle: the browser's own, so that focus stays inside and Escape leaves. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useKeys, type Binding } from "../keys";
import { Icon } from "./icons";

const NONE: Binding[] = [];

export function Dialog(given: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const title = useId();
  useKeys(given.title, NONE, { modal: true });
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
      class={given.wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        given.close();
      }}
      onClick={(event) => event.target === element.current && given.close()}
    >
      <div class="dialog-inside">
        <header class="dialog-head">
          <h2 id={title}>{given.title}</h2>
          <button type="button" class="bare" aria-label="Close" onClick={given.close}>
            <Icon name="close" />
          </button>
        </header>
        <div class="dialog-body" tabIndex={0} role="group" aria-label={given.title}>
          {given.children}
        </div>
        {given.actions && <footer class="dialog-foot">{given.actions}</footer>}
      </div>
    </dialog>
  );
}
