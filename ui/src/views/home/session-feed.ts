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
  waiting: ListedSession[];
  cursor: string | null;
  more: boolean;
}

const PAGE_SIZE = 30;

export class SessionFeed {
  readonly sessions: ListedSession[] = [];
  problem: Error | null = null;
  private readonly sources: Source[];
  private working = false;

  constructor(
    projects: ProjectRow[],
    private readonly filter: { agent?: string; status?: string },
  ) {
    this.sources = projects
      .filter((project) => project.sessions > 0 && !project.problem)
      .map((project) => ({ project, waiting: [], cursor: null, more: true }));
  }

  get ended(): boolean {
    return this.sources.every((source) => !source.more && !source.waiting.length);
  }

  /** Load `count` more sessions; return true if there were any. */
  async next(count = PAGE_SIZE): Promise<boolean> {
    if (this.working || this.ended) return false;
    this.working = true;
    const before = this.sessions.length;
    try {
      while (this.sessions.length < before + count && !this.ended) {
        const source = newest(this.sources);
        if (source.waiting.length) this.sessions.push(source.waiting.shift()!);
        else await this.fill(source);
      }
    } finally {
      this.working = false;
    }
    return this.sessions.length > before;
  }

  private async fill(source: Source): Promise<void> {
    try {
      const query = { limit: PAGE_SIZE, cursor: source.cursor, ...this.filter };
      const page = await api.sessions(source.project.project, query);
      source.waiting = page.sessions.map((session) => ({ ...session, where: source.project }));
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
  const able = sources.filter((source) => source.more || source.waiting.length);
  const time = (source: Source) => source.waiting[0]?.updated_at ?? source.project.updated_at ?? "";
  return able.reduce((best, source) => (time(source) > time(best) ? source : best));
}
