/**
 * Take back operations by their numbers. The server takes back exactly the one that is named, or
 * refuses because something else was done since.
 */

import { api, ApiError, type RestoreResult } from "./api";

/** Take back what one decision did, its last operation first; gives the numbers of the undos. */
export async function undoOperations(project: string, operations: readonly number[]): Promise<number[]> {
  const undos: number[] = [];
  for (const expect of [...operations].reverse())
    undos.push(operationNumber(await api.undo(project, { expect })));
  return undos;
}

/** Do again what `takeBack` took back; gives the numbers of the operations that do it. */
export async function redoOperations(project: string, undos: readonly number[]): Promise<number[]> {
  const redos: number[] = [];
  for (const expect of [...undos].reverse())
    redos.push(operationNumber(await api.redo(project, { expect })));
  return redos;
}

/** The last operation of the project, if it is a decision of a review; for a page just loaded. */
export async function lastReviewDecision(project: string): Promise<number[]> {
  const { undoes, undoes_kind } = await api.undo(project, { preview: true });
  if (undoes === null || !["keep", "discard"].includes(undoes_kind ?? ""))
    throw new ApiError("nothing_to_undo", "The last operation is no decision of a review.", 404);
  return [undoes];
}

/** An undo that only left files alone has no number: nothing was taken back. */
function operationNumber({ operation, skipped }: RestoreResult): number {
  if (operation !== null) return operation;
  const first = skipped[0];
  throw new Error(`Nothing was taken back${first ? `: ${first.path}: ${first.reason}` : ""}.`);
}
