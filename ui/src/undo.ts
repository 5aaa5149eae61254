/**
 * Undo and redo operations by number.
 *
 * The server undoes exactly the named operation, or refuses if another operation came after it.
 */

import { api, ApiError, type RestoreResult } from "./api";

/** Undo the operations of one decision, newest first; return the numbers of the undos. */
export async function undoOperations(
  project: string,
  operations: readonly number[],
): Promise<number[]> {
  const undos: number[] = [];
  for (const expect of [...operations].reverse())
    undos.push(operationNumber(await api.undo(project, { expect })));
  return undos;
}

/** Redo what `undoOperations` undid; return the numbers of the redos. */
export async function redoOperations(project: string, undos: readonly number[]): Promise<number[]> {
  const redos: number[] = [];
  for (const expect of [...undos].reverse())
    redos.push(operationNumber(await api.redo(project, { expect })));
  return redos;
}

/** Return the project's last operation if it is a review decision, else throw. */
export async function lastReviewDecision(project: string): Promise<number[]> {
  const { undoes, undoes_kind } = await api.undo(project, { preview: true });
  if (undoes === null || !["keep", "discard"].includes(undoes_kind ?? ""))
    throw new ApiError("nothing_to_undo", "The last operation is not a review decision.", 404);
  return [undoes];
}

/** Return the operation's number; throw if every file was skipped and nothing was undone. */
function operationNumber({ operation, skipped }: RestoreResult): number {
  if (operation !== null) return operation;
  const first = skipped[0];
  throw new Error(`Nothing was undone${first ? `: ${first.path}: ${first.reason}` : ""}.`);
}
