/**
 * Merge the sessions of all projects into one list, newest first, a page at a time.
 *
 * A project is queried only when its newest session may be next, so a home with a hundred projects
 * costs only the requests for what is shown.
 */

import { api, type ProjectRow, type Session } from "../../api";

export interface ListedSession extends Session {
  where: ProjectRow;
}

interface Source {
  project: ProjectRow;
  queued: ListedSession[];
  cursor: string | null;
  more: boolean;
}

export const PAGE_SIZE = 30;

export class SessionFeed {
  readonly sessions: ListedSession[] = [];
  problem: Error | null = null;
  private readonly sources: Source[];
  private isLoading = false;

  constructor(projects: ProjectRow[]) {
    this.sources = projects
      .filter((project) => project.sessions > 0 && !project.problem)
      .map((project) => ({ project, queued: [], cursor: null, more: true }));
  }

  get ended(): boolean {
    return this.sources.every((source) => !source.more && !source.queued.length);
  }

  /** Load `count` more sessions; return true if there were any. */
  async next(count = PAGE_SIZE): Promise<boolean> {
    if (this.isLoading || this.ended) return false;
    this.isLoading = true;
    const before = this.sessions.length;
    try {
      while (this.sessions.length < before + count && !this.ended) {
        const source = newest(this.sources);
        if (source.queued.length) this.sessions.push(source.queued.shift()!);
        else await this.fill(source);
      }
    } finally {
      this.isLoading = false;
    }
    return this.sessions.length > before;
  }

  private async fill(source: Source): Promise<void> {
    try {
      const query = { limit: PAGE_SIZE, cursor: source.cursor };
      const page = await api.sessions(source.project.project, query);
      source.queued = page.sessions.map((session) => ({ ...session, where: source.project }));
      source.cursor = page.next_cursor;
      source.more = page.has_more;
    } catch (problem) {
      // The other projects are still listed.
      this.problem = problem as Error;
      source.more = false;
    }
  }
}

/** Return the source with the newest session; an unqueried one counts by its last update. */
function newest(sources: Source[]): Source {
  const able = sources.filter((source) => source.more || source.queued.length);
  const time = (source: Source) => source.queued[0]?.updated_at ?? source.project.updated_at ?? "";
  return able.reduce((best, source) => (time(source) > time(best) ? source : best));
}
