/**
 * When a directory was opened as a backup of another, in milliseconds, oldest first. What its streams got elsewhere
 * after the backup they have lost, and offsets of that must not fit what they got since.
 */
export type Restores = readonly number[];

/** Of a directory that never was a backup. */
export const NEVER_RESTORED: Restores = [];

/** So many of the newest are kept: what was written after an older one counts as written before it. */
const MAX_RESTORES = 1000;

/** With one more, now. A clock that was put back keeps them in order. */
export function restoredAgain(restores: Restores, nowMs: number): Restores {
  return [...restores, Math.max(nowMs, lastRestoreMs(restores) + 1)].slice(-MAX_RESTORES);
}

/** When the last was; `-Infinity` without one. */
export function lastRestoreMs(restores: Restores): number {
  return restores.at(-1) ?? -Infinity;
}

/** Who wrote a segment of the stream `id`, as offset tokens tell writers apart: another one after each restore. */
export function writerOf(id: string, firstAtMs: number, restores: Restores): string {
  const lastMs = restores.findLast((atMs) => atMs <= firstAtMs);
  return lastMs === undefined ? id : `${id}.${lastMs}`;
}
