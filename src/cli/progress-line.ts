import type { VerifyProgress } from "../storage/file/offline/verify.js";
import type { Output } from "./verb.js";

/** At least this long between two changes of the line. */
const PAUSE_MS = 100;
const WIDTH = 30;
const MiB = 1024 * 1024;

/** A line on a terminal that says how far the work is; nothing elsewhere. */
export class ProgressLine {
  readonly #output: Output;
  readonly #nowMs: () => number;
  #shownAtMs = -Infinity;

  constructor(output: Output, nowMs = (): number => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
  }

  /** Shows a state, unless the last one was shown just now. */
  show({ streams, bytes, done }: VerifyProgress): void {
    const nowMs = this.#nowMs();
    if (this.#output.isTTY !== true || nowMs - this.#shownAtMs < PAUSE_MS) return;
    this.#shownAtMs = nowMs;
    const bar = "#".repeat(Math.floor(done * WIDTH)).padEnd(WIDTH, ".");
    this.#output.write(`\r[${bar}] ${Math.floor(done * 100)}% ${streams} streams, ${Math.floor(bytes / MiB)} MiB\u001b[K`);
  }

  /** Takes the line away, for others to be written. */
  clear(): void {
    if (this.#shownAtMs === -Infinity) return;
    this.#shownAtMs = -Infinity;
    this.#output.write("\r\u001b[K");
  }
}
