/** Keeps an error while drawing one part of the page from taking the others along. */

import { Component, type ComponentChildren } from "preact";

interface Props {
  /** Drawn in the place of the children once they fail. */
  fallback: (problem: Error, retry: () => void) => ComponentChildren;
  children: ComponentChildren;
}

export class Guard extends Component<Props, { problem: Error | null }> {
  override state = { problem: null };

  static getDerivedStateFromError(problem: Error) {
    return { problem };
  }

  override componentDidCatch(problem: Error): void {
    console.warn(problem);
  }

  render({ fallback, children }: Props, { problem }: { problem: Error | null }) {
    return problem ? fallback(problem, () => this.setState({ problem: null })) : children;
  }
}
