/** Choices of the user, saved in the browser. */

import { useState } from "preact/hooks";

export function loadPreference(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function savePreference(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The browser may forbid storage; the choice then lasts until the page is closed.
  }
}

/** Component state that is saved as a preference. */
export function usePreference<T extends string>(name: string, usual: T): [T, (value: T) => void] {
  const [value, setValue] = useState((loadPreference(name) as T | null) ?? usual);
  const choose = (chosen: T) => {
    setValue(chosen);
    savePreference(name, chosen);
  };
  return [value, choose];
}
