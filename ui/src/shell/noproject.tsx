import type { ComponentChildren } from "preact";
import { EmptyState, Skeleton } from "../parts/small";
import { projects } from "../state";

/** The empty state of a project view when there is no project. */
export function NoProject(props: { icon: string; title: string; children: ComponentChildren }) {
  if (!projects.value) return <Skeleton />;
  return (
    <EmptyState icon={props.icon} title={props.title}>
      <p>{props.children}</p>
    </EmptyState>
  );
}
