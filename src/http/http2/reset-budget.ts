/** How many streams a client may break off: at once, and for each second after that. */
const MAX_RESETS = 512;
const RESETS_PER_SECOND = 32;

/**
 * Counts the streams of one connection that are reset. Each costs the server a request and
 * the client a few bytes, and does not count for the most that may be open at a time ("rapid reset", CVE-2023-44487). A
 * client that makes the server reset them counts as well. The library below has such a limit too; but once it has said
 * goodbye, Node reads no more of the connection and leaves it open.
 */
export class ResetBudget {
  #left = MAX_RESETS;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Counts one; false once there have been too many. */
  spend(nowMs: number): boolean {
    const seconds = Math.max(0, nowMs - this.#atMs) / 1000;
    this.#left = Math.min(MAX_RESETS, this.#left + seconds * RESETS_PER_SECOND) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}
