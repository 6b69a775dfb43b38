// Shows on a terminal how far a verb is, how fast, and how long it still takes.

import { oneLine } from "../../../ops/log.js";
import { MiB } from "../../../options/spec.js";
import type { Output } from "../../command/verb.js";

/** The least time between two changes of the line, in milliseconds. */
const PAUSE_MS = 200;

/** A line on standard error that is written over itself; shows nothing where no terminal is. */
export class Meter {
  readonly #output: Output;
  readonly #nowMs: () => number;
  readonly #beganMs: number;
  #shownAtMs: number;

  constructor(output: Output, nowMs = (): number => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#beganMs = nowMs();
    this.#shownAtMs = this.#beganMs;
  }

  /** Shows bytes that are done, of `total` where that is known, unless the line was shown just now. */
  show(what: string, bytes: number, total: number | null = null): void {
    this.#show(what, bytes, total, (perSecond) =>
      total === null || perSecond === 0 ? null : Math.max(0, total - bytes) / perSecond,
    );
  }

  /** The same for work that ends at a time. */
  showUntil(what: string, bytes: number, leftMs: number): void {
    this.#show(what, bytes, null, () => Math.max(0, leftMs) / 1000);
  }

  #show(what: string, bytes: number, total: number | null, secondsLeft: (perSecond: number) => number | null): void {
    const nowMs = this.#nowMs();
    if (this.#output.isTTY !== true || nowMs - this.#shownAtMs < PAUSE_MS) return;
    this.#shownAtMs = nowMs;
    const perSecond = bytes / Math.max(0.001, (nowMs - this.#beganMs) / 1000);
    const seconds = secondsLeft(perSecond);
    const left = seconds === null ? "" : `, ${written(seconds)} left`;
    const of = total === null ? "" : ` of ${mebibytes(total)}`;
    this.#output.write(`\r${oneLine(what)}: ${mebibytes(bytes)}${of}, ${mebibytes(perSecond)}/s${left}\u001b[K`);
  }

  /** Removes the line, so that others can be written. */
  clear(): void {
    if (this.#output.isTTY === true) this.#output.write("\r\u001b[K");
  }
}

function mebibytes(bytes: number): string {
  return `${(bytes / MiB).toFixed(bytes < 10 * MiB ? 1 : 0)} MiB`;
}

function written(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h`;
}
