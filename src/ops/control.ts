// Answers commands on the socket of the process.

import type { Socket } from "node:net";
import type { Clock } from "./clock.js";
import { packageVersion } from "./version.js";

/** The version of this protocol: raised by a change that an older command would misread. */
const PROTOCOL = 1;
/** Most bytes of a request, with its line feed. */
const MAX_REQUEST_BYTES = 4096;
/** How long a connection may last that is for one short question, in milliseconds. */
const MAX_CONNECTION_MS = 5000;

/** The process's side of a conversation. */
export interface Speaker {
  say(line: object): void;
  /** Says a last line. */
  end(line: object): void;
}

/** Hears what the command says after its first request. */
export interface Hearer {
  heard(request: string): void;
  /** The connection has ended, by either side. */
  left(): void;
}

/** Begins a conversation; `null` where it has ended already. */
export type Conversation = (speaker: Speaker) => Hearer | null;

/**
 * Talks to commands that connect to this process's socket. Each side sends lines of JSON. First the process says what
 * it is; then the command sends a request. One that begins a conversation goes on until a side ends it; every other is
 * answered with `unknown-command`, one over 4 KiB with `request-too-long`, and the connection ends.
 */
export class Control {
  readonly #clock: Clock;
  readonly #conversations: ReadonlyMap<string, Conversation>;
  /** Made once: when a command connects, there may be no descriptor left to read the version with. */
  readonly #greeting = lineOf({ streamdir: packageVersion(), protocol: PROTOCOL, pid: process.pid });

  /** `conversations` are those that it has, by the command that begins each. */
  constructor(clock: Clock, conversations: ReadonlyMap<string, Conversation> = new Map()) {
    this.#clock = clock;
    this.#conversations = conversations;
  }

  /** Greets and answers; without a conversation it ends within 5 s. */
  serve(connection: Socket): void {
    const deadline = this.#clock.after(MAX_CONNECTION_MS, () => connection.destroy());
    let hearer: Hearer | null = null;
    connection.once("close", () => {
      deadline.cancel();
      hearer?.left();
    });
    // The other side left early, as one does that only checks whether a process is there.
    connection.on("error", () => connection.destroy());
    const speaker = speakerOn(connection);
    const hear = (request: string): void => {
      if (connection.writableEnded) return;
      if (hearer !== null) return hearer.heard(request);
      hearer = this.#conversations.get(commandIn(request) ?? "")?.(speaker) ?? null;
      if (hearer !== null) deadline.cancel();
      else if (!connection.writableEnded) speaker.end({ error: "unknown-command" });
    };
    connection.setEncoding("latin1").on(
      "data",
      linesOf(hear, () => speaker.end({ error: "request-too-long" })),
    );
    connection.write(this.#greeting);
  }
}

/** Hears nothing of who does not read what is said: it would all be kept here. */
function speakerOn(connection: Socket): Speaker {
  connection.on("drain", () => connection.resume());
  return {
    say: (line) => {
      if (connection.writable && !connection.write(lineOf(line))) connection.pause();
    },
    end: (line) => {
      if (!connection.writable) return;
      // Its other end is to be seen, and after a last line nothing drains.
      connection.end(lineOf(line));
      connection.resume();
    },
  };
}

/** Cuts what arrives into lines; `tooLong` is called when one has more than 4 KiB, and nothing is heard after that. */
function linesOf(hear: (line: string) => void, tooLong: () => void): (chunk: string) => void {
  let rest = "";
  let isOver = false;
  return (chunk) => {
    if (isOver) return;
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    isOver = [...lines, rest].some((line) => line.length >= MAX_REQUEST_BYTES);
    if (isOver) tooLong();
    else for (const line of lines) hear(line);
  };
}

/** The command that a request names, `null` where it is none. */
export function commandIn(request: string): string | null {
  try {
    const value: unknown = JSON.parse(request);
    if (typeof value !== "object" || value === null || !("command" in value)) return null;
    return typeof value.command === "string" ? value.command : null;
  } catch {
    // Whatever it is, it is no request.
    return null;
  }
}

function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
