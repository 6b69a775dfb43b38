// Writes the lines of an answer's head as text.

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

/** How long a connection waits for its next request, in seconds. */
export const KEEP_ALIVE_SECONDS = 75;

/** Headers that many answers share: names and values in turn, and the lines they make. */
export class CommonHeaders {
  readonly list: readonly string[];
  readonly text: string;
  /** The same without the `Vary`; itself where there is none. */
  readonly unvaried: CommonHeaders;
  readonly #vary: string | null;
  /** The first lines of answers that have these headers, by status. */
  readonly #openings: string[] = [];

  /** Throws a TypeError where a name or a value can't stand in a head. */
  constructor(list: readonly string[]) {
    this.list = list;
    this.text = linesOf(list);
    const at = list.indexOf("Vary");
    this.#vary = at < 0 ? null : (list[at + 1] ?? null);
    this.unvaried = at < 0 ? this : new CommonHeaders(list.toSpliced(at, 2));
  }

  /**
   * The headers `own` of one answer, with all that it depends on in their `Vary`, so that {@link unvaried} go with it:
   * of several `Vary` nginx before 1.23 takes the last alone. `own` itself where only one of the two has any.
   */
  joinVary(own: readonly string[]): readonly string[] {
    if (this.#vary === null) return own;
    const at = own.indexOf("Vary");
    if (at < 0) return own;
    const value = own[at + 1] ?? "";
    return own.with(at + 1, value === "*" ? value : `${this.#vary}, ${value}`);
  }

  /** The first line of an answer and these headers. */
  openingOf(status: number): string {
    return (this.#openings[status] ??= flat(statusLine(status) + this.text));
  }
}

/**
 * The same text in one piece of memory: concatenated strings are a tree, which each answer that contains it would walk.
 */
export function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

/** The first line of an answer. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
}

/**
 * Headers that cannot hold a line break: their values are made here, or were checked on arrival (a stream's content
 * type, by the protocol's grammar). All others are checked.
 */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  "Cache-Control",
  "Content-Length",
  "Content-Type",
  "ETag",
  "Producer-Epoch",
  "Producer-Seq",
  "Stream-Closed",
  "Stream-Cursor",
  "Stream-Next-Offset",
  "Stream-Up-To-Date",
  "Vary",
  "X-Accel-Expires",
]);

/** The lines of headers, names and values in turn. Throws a TypeError where one can't stand in a head. */
export function linesOf(list: readonly string[]): string {
  let text = "";
  for (let at = 0; at + 1 < list.length; at += 2) {
    const name = list[at] ?? "";
    const value = list[at + 1] ?? "";
    if (!PLAIN_HEADERS.has(name)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

const NO_HEADERS: readonly string[] = [];

/** The header with a body's length in bytes; empty for `null`. */
export function lengthHeader(length: number | null): readonly string[] {
  return length === null ? NO_HEADERS : ["Content-Length", String(length)];
}

const ID_NAME = "X-Request-Id: ";
const HEAD_END = "\r\n\r\n";
/** The last digits of ids, by their number: a thousand ids have what is before these in one text. */
export const ID_ENDS: readonly string[] = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, "0"));
const LAST_LINES = ID_ENDS.map((digits) => flat(digits + HEAD_END));

/** The last lines of a head after which the connection stays open; the text is reused for a second. */
export class ClosingLines {
  #second = -1;
  #text = "";
  #textBeforeId = "";
  #idStart = "";
  #textWithStart = "";

  /** The lines, and the empty one after them. */
  at(nowMs: number): string {
    this.#make(nowMs);
    return this.#text;
  }

  /**
   * The same with the request's id: its start, and the number of the digits after it, negative for none. In few pieces,
   * as each piece of a head costs time.
   */
  withId(idStart: string, idNumber: number, nowMs: number): string {
    this.#make(nowMs);
    if (idNumber < 0) return this.#textBeforeId + idStart + HEAD_END;
    if (idStart !== this.#idStart) {
      this.#idStart = idStart;
      this.#textWithStart = flat(this.#textBeforeId + idStart);
    }
    return this.#textWithStart + (LAST_LINES[idNumber] ?? HEAD_END);
  }

  #make(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second === this.#second) return;
    this.#second = second;
    const date = new Date(second * 1000).toUTCString();
    const text = `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_SECONDS}\r\n`;
    this.#text = flat(`${text}\r\n`);
    this.#textBeforeId = flat(text + ID_NAME);
    this.#idStart = "";
  }
}
