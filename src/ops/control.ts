import type { Socket } from "node:net";
import type { Clock } from "./clock.js";
import { packageVersion } from "./version.js";

/** The version of what is spoken here: a change that an older command would misread raises it. */
const PROTOCOL = 1;
/** Longest request, with its line feed. */
const MAX_REQUEST_BYTES = 4096;
/** How long a connection may last: it is for one short question. */
const MAX_CONNECTION_MS = 5000;

/**
 * Talks to commands that connect to this process's socket. Each side speaks in lines of JSON: first the process says
 * what it is; then the command may ask one thing, is answered with one line, and the connection ends. There is nothing
 * to ask for yet: every request is answered with `unknown-command`, one over 4 KiB with `request-too-long`.
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
    // It left early, as whoever only wants to know that somebody is there.
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
