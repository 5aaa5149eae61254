/**
 * Keyboard shortcuts of the views and dialogs on screen.
 *
 * Each view or dialog adds a layer; the topmost layer that binds a key handles it. A `modal` layer
 * hides all layers below it. Keys typed into a form field stay in the field, except Escape.
 */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  key: string;
  does: string;
  run: () => void;
}

interface Layer {
  title: string;
  modal: boolean;
  bindings: () => Binding[];
}

const SEQUENCE_S = 1.2;

export const layers = signal<Layer[]>([]);
export const helpShown = signal(false);

/** Bind the keys of a component while it is mounted. */
export function useKeys(title: string, bindings: Binding[], { modal = false } = {}): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  useLayoutEffect(() => {
    const layer: Layer = { title, modal, bindings: () => latest.current };
    layers.value = [...layers.value, layer];
    return () => {
      layers.value = layers.value.filter((each) => each !== layer);
    };
  }, [title, modal]);
}

export function start(): void {
  let prefix = "";
  let prefixExpiresAt = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    const waiting = prefix && event.timeStamp < prefixExpiresAt;
    const pressed = waiting ? `${prefix} ${event.key}` : event.key;
    prefix = "";
    if (run(pressed)) {
      event.preventDefault();
    } else if (!waiting && startsSequence(event.key)) {
      prefix = event.key;
      prefixExpiresAt = event.timeStamp + SEQUENCE_S * 1000;
      event.preventDefault();
    }
  });
}

function activeLayers(): Layer[] {
  const active: Layer[] = [];
  for (const layer of [...layers.value].reverse()) {
    active.push(layer);
    if (layer.modal) break;
  }
  return active;
}

function run(pressed: string): boolean {
  for (const layer of activeLayers()) {
    const binding = layer.bindings().find(({ key }) => key === pressed);
    if (binding) {
      binding.run();
      return true;
    }
  }
  return false;
}

function startsSequence(pressed: string): boolean {
  return activeLayers().some((layer) =>
    layer.bindings().some(({ key }) => key.startsWith(`${pressed} `)),
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}
