import type { ComponentChildren } from "preact";
import { Empty, Skeleton } from "../parts/small";
import { projects } from "../state";

/** What a view says that is about a project, when there is none; as soon as that is known. */
export function NoProject(given: { icon: string; title: string; children: ComponentChildren }) {
  if (!projects.value) return <Skeleton />;
  return (
    <Empty icon={given.icon} title={given.title}>
      <p>{given.children}</p>
    </Empty>
  );
}
