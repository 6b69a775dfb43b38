// Shows on a terminal how far an offline command is.

import { MiB } from "../options/spec.js";
import type { VerifyProgress } from "../storage/file/offline/verify.js";
import type { Output } from "./command/verb.js";

/** The least time between two changes of the line, in milliseconds. */
const PAUSE_MS = 100;
const WIDTH = 30;

/** Shows on a terminal how far the work is; shows nothing elsewhere. */
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
    const text = `[${bar}] ${Math.floor(done * 100)}% ${streams} streams, ${Math.floor(bytes / MiB)} MiB`;
    // One that goes on in a second line could not be taken back.
    const { columns = 0 } = this.#output;
    this.#output.write(`\r${columns > 0 ? text.slice(0, columns - 1) : text}\u001b[K`);
  }

  /** Removes the line, so that others can be written. */
  clear(): void {
    if (this.#shownAtMs === -Infinity) return;
    this.#shownAtMs = -Infinity;
    this.#output.write("\r\u001b[K");
  }
}
