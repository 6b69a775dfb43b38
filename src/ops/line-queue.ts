// Writes many lines to an output that may be slow, and never waits for it.

import type { Clock, Timer } from "./clock.js";

/** Lines are written together once they are so many characters, or so many milliseconds after the first. */
const BATCH_CHARS = 32 * 1024;
const BATCH_MS = 100;
/** Most characters that wait, or are on their way. What comes while there are as many is dropped. */
const MAX_WAITING_CHARS = 4 * 1024 * 1024;
/** How long the end waits for the output. */
const MAX_END_MS = 1000;

/** Where lines go: standard output, or what a test puts in its place. */
export interface LineOutput {
  /** Takes `bytes` without blocking; `written` is called when it has left the process, or can't any more. */
  write(bytes: Buffer, written: () => void): unknown;
  on?(event: "error", listener: () => void): unknown;
}

/** Gathers lines and writes them in batches. An output that stands still costs lines, never time. */
export class LineQueue {
  /** Lines that were dropped since the start. */
  dropped = 0;
  readonly #output: LineOutput;
  readonly #clock: Pick<Clock, "after">;
  #text = "";
  #lines = 0;
  #sentChars = 0;
  #timer: Timer | null = null;
  #onIdle: (() => void) | null = null;

  constructor(output: LineOutput, clock: Pick<Clock, "after">) {
    this.#output = output;
    this.#clock = clock;
    // Who reads it has gone: its callback says so, too, and the server goes on.
    output.on?.("error", () => undefined);
  }

  /** Adds a line of ASCII, which is without its line feed; drops it where too much waits. */
  push(line: string): void {
    if (this.#sentChars + this.#text.length + line.length >= MAX_WAITING_CHARS) {
      this.dropped += 1;
      return;
    }
    this.#text += line;
    this.#text += "\n";
    this.#lines += 1;
    if (this.#text.length >= BATCH_CHARS) this.#flush();
    else this.#timer ??= this.#clock.after(BATCH_MS, () => this.#flush());
  }

  /** Writes what is left; resolves when it is out, after 1 s at the latest. */
  async close(): Promise<void> {
    this.#flush();
    if (this.#sentChars === 0) return;
    await new Promise<void>((resolve) => {
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
    // One at a time: what comes meanwhile waits here, where it is bounded.
    if (this.#lines === 0 || this.#sentChars > 0) return;
    const text = this.#text;
    this.#text = "";
    this.#lines = 0;
    this.#sentChars = text.length;
    this.#output.write(Buffer.from(text, "latin1"), () => this.#written());
  }

  #written(): void {
    this.#sentChars = 0;
    if (this.#lines > 0) this.#flush();
    else this.#onIdle?.();
  }
}
