// Answers commands on the socket of the process.

import type { Socket } from "node:net";
import type { Clock } from "./clock.js";
import { packageVersion } from "./version.js";

/** The version of this protocol: raised by a change that an older command would misread. */
const PROTOCOL = 1;
/** Most bytes of a request, with its line feed. */
const MAX_REQUEST_BYTES = 4096;
/** How long a connection may last, in milliseconds: it is for one short question. */
const MAX_CONNECTION_MS = 5000;

/**
 * Talks to commands that connect to this process's socket. Each side sends lines of JSON. First the process says what
 * it is; then the command may send one request, gets one line in answer, and the connection ends. There are no requests
 * yet: each is answered with `unknown-command`, one over 4 KiB with `request-too-long`.
 */
export class Control {
  readonly #clock: Clock;
  /** Made once: when a command connects, there may be no descriptor left to read the version with. */
  readonly #greeting = lineOf({ streamdir: packageVersion(), protocol: PROTOCOL, pid: process.pid });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Greets, answers and ends within 5 s. */
  serve(connection: Socket): void {
    const deadline = this.#clock.after(MAX_CONNECTION_MS, () => connection.destroy());
    connection.once("close", () => deadline.cancel());
    // The other side left early, as one does that only checks whether a process is there.
    connection.on("error", () => connection.destroy());
    let request = "";
    connection.setEncoding("latin1").on("data", (chunk: string) => {
      if (connection.writableEnded) return;
      request += chunk;
      if (request.length > MAX_REQUEST_BYTES) connection.end(lineOf({ error: "request-too-long" }));
      else if (request.includes("\n")) connection.end(lineOf({ error: "unknown-command" }));
    });
    connection.write(this.#greeting);
  }
}

function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
