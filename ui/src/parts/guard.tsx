/** An error boundary: if its children fail to render, the rest of the page stays. */

import { Component, type ComponentChildren } from "preact";

interface Props {
  /** Rendered instead of children that failed. */
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
