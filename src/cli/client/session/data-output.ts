// Standard output of a verb whose output is data.

import type { Output } from "../../command/verb.js";

/** What becomes of a write: `gone` when whoever read has closed the pipe. */
export type Written = "written" | "gone";

/** Writes data as fast as it is taken. */
export class DataOutput {
  readonly #output: Output;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Whether people look at it. */
  get isTerminal(): boolean {
    return this.#output.isTTY === true;
  }

  /** Resolves when the bytes have left the process. Rejects when they can't, as on a full disk. */
  write(bytes: Buffer | string): Promise<Written> {
    if (bytes.length === 0) return Promise.resolve("written");
    return new Promise((resolve, reject) => {
      this.#output.write(bytes, (error) => {
        if (error === null || error === undefined) resolve("written");
        else if ("code" in error && (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED")) resolve("gone");
        else reject(error);
      });
    });
  }

  /** A value as one line of JSON. */
  writeJson(value: unknown): Promise<Written> {
    return this.write(`${JSON.stringify(value)}\n`);
  }
}
