import type { ComponentChildren } from "preact";
import { EmptyState, Skeleton } from "../parts/small";
import { projects } from "../state";

/** What a view says that is about a project, when there is none; as soon as that is known. */
export function NoProject(props: { icon: string; title: string; children: ComponentChildren }) {
  if (!projects.value) return <Skeleton />;
  return (
    <EmptyState icon={props.icon} title={props.title}>
      <p>{props.children}</p>
    </EmptyState>
  );
}
