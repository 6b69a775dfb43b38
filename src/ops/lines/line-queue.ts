// Writes many lines to an output that may be slow, and never waits for it.

import type { Clock, Timer } from "../clock.js";
import { LineBytes } from "./line-bytes.js";
import type { Log } from "../log.js";

/** Lines are written together once they are so many bytes, or so many milliseconds after the first. */
const BATCH_BYTES = 32 * 1024;
const BATCH_MS = 100;
/** The longest line, with its line feed. */
export const MAX_LINE_BYTES: number = 24 * 1024;
/** Most bytes that wait, or are on their way. What comes while there are as many is dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** How long the end waits for the output. */
const MAX_END_MS = 1000;
const LINE_FEED = 10;

/** Where lines go: standard output, or what a test puts in its place. */
export interface LineOutput {
  /** Takes `bytes` without blocking; `written` is called when it has left the process, or with why it can't. */
  write(bytes: Buffer, written: (fault?: Error | null) => void): unknown;
  on?(event: "error", listener: () => void): unknown;
  off?(event: "error", listener: () => void): unknown;
}

/** Gathers lines and writes them in batches. An output that stands still costs lines, never time. */
export class LineQueue {
  /** Lines that were dropped since the start: nobody took them fast enough, or they could not be written. */
  dropped = 0;
  readonly #output: LineOutput;
  readonly #clock: Pick<Clock, "after">;
  readonly #log: Pick<Log, "warn">;
  /** Until a block is written again. */
  #hasFailed = false;
  /** Until nothing waits any more. */
  #isBehind = false;
  #block = blockOfLines();
  /** Full ones, which wait for the output. */
  #full: LineBytes[] = [];
  #fullBytes = 0;
  /** The one that the output has. */
  #sent: LineBytes | null = null;
  /** One that is free again. */
  #spare: LineBytes | null = null;
  #timer: Timer | null = null;
  #onIdle: (() => void) | null = null;
  /** Who reads the output has gone: its callback says so, too, which counts the lines, and the server goes on. */
  readonly #ignore = (): void => {};

  constructor(output: LineOutput, clock: Pick<Clock, "after">, log: Pick<Log, "warn">) {
    this.#output = output;
    this.#clock = clock;
    this.#log = log;
    output.on?.("error", this.#ignore);
  }

  /**
   * Begins a line of at most {@link MAX_LINE_BYTES}: whoever calls writes it whole, and then calls {@link end}. `null`
   * where too much waits: that line is dropped.
   */
  begin(): LineBytes | null {
    const waiting = (this.#sent?.length ?? 0) + this.#fullBytes + this.#block.length;
    if (waiting < MAX_WAITING_BYTES - MAX_LINE_BYTES) return this.#block;
    this.dropped += 1;
    if (!this.#isBehind) this.#log.warn("the access log is not taken fast enough: lines are dropped");
    this.#isBehind = true;
    return null;
  }

  /** Ends the line that was begun. */
  end(): void {
    this.#block.addByte(LINE_FEED);
    if (this.#block.length >= BATCH_BYTES) this.#flush();
    else this.#timer ??= this.#clock.after(BATCH_MS, () => this.#flush());
  }

  /** Writes what is left; resolves when it is out, after 1 s at the latest. */
  async close(): Promise<void> {
    this.#flush();
    if (this.#sent !== null) await this.#whenIdle();
    // What is still on its way may fail yet.
    if (this.#sent === null) this.#output.off?.("error", this.#ignore);
  }

  #whenIdle(): Promise<void> {
    return new Promise<void>((resolve) => {
      const limit = this.#clock.after(MAX_END_MS, resolve);
      this.#onIdle = () => {
        limit.cancel();
        resolve();
      };
    });
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const { length } = this.#block;
    // One at a time: what comes meanwhile waits here, where it is bounded, and each block has as much as it should.
    if (length === 0 || (this.#sent !== null && length < BATCH_BYTES)) return;
    this.#full.push(this.#block);
    this.#fullBytes += length;
    this.#block = this.#spare ?? blockOfLines();
    this.#spare = null;
    if (this.#sent === null) this.#sendNext();
  }

  #sendNext(): void {
    const next = this.#full.shift();
    if (next === undefined) return;
    this.#fullBytes -= next.length;
    this.#sent = next;
    let isOver = false;
    const failed = (fault: unknown): void => written(fault instanceof Error ? fault : new Error(String(fault)));
    const written = (fault?: unknown): void => {
      // Called again, or called and failed as well.
      if (isOver) return;
      isOver = true;
      if (fault instanceof Error) this.#failed(next, fault);
      else this.#hasFailed = false;
      this.#written(next);
    };
    try {
      const writing = this.#output.write(next.bytes.subarray(0, next.length), written);
      if (writing instanceof Promise) writing.catch(failed);
    } catch (fault) {
      failed(fault);
    }
  }

  #failed(block: LineBytes, { message }: Error): void {
    for (let at = 0; at < block.length; at += 1) if (block.bytes[at] === LINE_FEED) this.dropped += 1;
    if (!this.#hasFailed) this.#log.warn("the access log can't be written: its lines are dropped", { fault: message });
    this.#hasFailed = true;
  }

  #written(block: LineBytes): void {
    this.#sent = null;
    if (this.#full.length === 0) this.#isBehind = false;
    block.length = 0;
    this.#spare = block;
    if (this.#full.length > 0) this.#sendNext();
    else if (this.#block.length > 0) this.#flush();
    else this.#onIdle?.();
  }
}

function blockOfLines(): LineBytes {
  return new LineBytes(BATCH_BYTES + MAX_LINE_BYTES);
}
