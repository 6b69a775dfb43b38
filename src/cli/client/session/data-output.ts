// Standard output of a verb whose output is data.

import { oneLine, visibleJson } from "../../../ops/log.js";
import { isOpenFile, writeWhole } from "../../../ops/watched-file.js";
import type { Output } from "../../command/verb.js";

/** What becomes of a write: `gone` when whoever read has closed the pipe, or the verb is to end before it is read. */
export type Written = "written" | "gone";

/** Writes data as fast as it is taken. */
export class DataOutput {
  readonly #output: Output;
  readonly #signal: AbortSignal;
  /** The descriptor of a file, which is written without Node's stream: that takes a part of a write for all of it. */
  readonly #file: number | null;
  #isCut = false;

  /** `signal` ends the wait for a reader that reads no more, and has not gone. */
  constructor(output: Output, signal: AbortSignal) {
    this.#output = output;
    this.#signal = signal;
    const { fd } = output;
    this.#file = fd !== undefined && isOpenFile(fd) ? fd : null;
  }

  /** Whether a write was given up because of the signal. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether people look at it. */
  get isTerminal(): boolean {
    return this.#output.isTTY === true;
  }

  /** Resolves when the bytes have left the process. Rejects when they can't, as on a full disk. */
  write(bytes: Buffer | string): Promise<Written> {
    if (bytes.length === 0) return Promise.resolve("written");
    return new Promise((resolve, reject) => {
      const cut = (): void => {
        this.#isCut = true;
        resolve("gone");
      };
      if (this.#signal.aborted) return cut();
      if (this.#file !== null) {
        writeWhole(this.#file, typeof bytes === "string" ? Buffer.from(bytes) : bytes);
        return resolve("written");
      }
      this.#signal.addEventListener("abort", cut, { once: true });
      this.#output.write(bytes, (error) => {
        this.#signal.removeEventListener("abort", cut);
        if (error === null || error === undefined) resolve("written");
        else if ("code" in error && (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED")) resolve("gone");
        else reject(error);
      });
    });
  }

  /** A value as one line of JSON. */
  writeJson(value: unknown): Promise<Written> {
    return this.write(`${visibleJson(value)}\n`);
  }

  /** A name as it is printed: a terminal shows what can't be seen, and may change what is; a pipe gets it as it is. */
  shown(name: string): string {
    return this.isTerminal ? oneLine(name) : name;
  }
}
