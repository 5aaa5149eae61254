/**
 * Taking back what was just done here, and nothing else.
 *
 * Undo takes back the last operation of the project, whoever did it. An agent may have ended a turn
 * since, and that is not meant; so what would be undone is looked at first.
 */

import { api } from "./api";

const LOOKED_AT = 50;

export interface Done {
  /** The operations that it made, where they are known; they are taken back from the last on. */
  operations?: number[];
  /** What it may be, where they are not. */
  kinds: string[];
}

export async function takeBack(project: string, done: Done): Promise<void> {
  const wanted = done.operations?.length ? [...done.operations].reverse() : [null];
  for (const number of wanted) {
    const { undoes } = await api.undo(project, { preview: true });
    const meant = number === null ? await isOf(project, undoes, done.kinds) : undoes === number;
    if (!meant)
      throw new Error(
        "Something else was done since, so nothing was taken back. The checkpoints show what.",
      );
    await api.undo(project, {});
  }
}

async function isOf(project: string, undoes: number | null, kinds: string[]): Promise<boolean> {
  const { operations } = await api.operations(project, { limit: LOOKED_AT });
  const found = operations.find((each) => each.operation === undoes);
  return found !== undefined && kinds.includes(found.kind);
}
