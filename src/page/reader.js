// Reads pages of messages, forwards from a place and backwards from the tail.

import { joined, kindOf, linesEnd, splitArray, splitBytes, splitLines } from "./messages.js";

/** @typedef {import("./rows.js").Message} Message */

/** Messages (in streams of bytes: appends) of a page. */
export const PAGE_MESSAGES = 100;
/** What is read for one page at most. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;
/** So often it is tried to read up to the same place twice, while somebody appends. */
const TRIES = 3;

/**
 * What is shown already: `units` (messages in JSON, else bytes) before the place `at`, and about `since` after it. Live
 * text does not tell its length: its line breaks are all alike.
 * @typedef {{ units: number, at: string, since: number }} Known
 */

export class PageReader {
  #api;
  #name;
  #kind;
  #signal;
  /** @type {Uint8Array} The beginning of a line, in forward order. */
  #rest = new Uint8Array();

  /**
   * @param {import("./api.js").Api} api
   * @param {string} name
   * @param {string} contentType
   * @param {AbortSignal} signal
   */
  constructor(api, name, contentType, signal) {
    this.#api = api;
    this.#name = name;
    this.#kind = kindOf(contentType);
    this.#signal = signal;
  }

  /**
   * One answer from a place on, in the order of the stream. A line that ends in no answer yet comes with the next.
   * @param {import("./api.js").Fields} query
   */
  async forward(query) {
    const chunk = await this.#api.read(this.#name, query, this.#signal);
    const bytes = this.#rest.length === 0 ? chunk.bytes : joined([this.#rest, chunk.bytes]);
    const isCut = this.#kind === "text" && !chunk.upToDate && bytes.length < MAX_PAGE_BYTES;
    const end = isCut ? linesEnd(bytes) : bytes.length;
    this.#rest = bytes.subarray(end);
    return { ...chunk, messages: this.messagesOf(bytes.subarray(0, end)) };
  }

  /**
   * The last messages, in the order of the stream: fewer where they are large. `null` where those before the known ones
   * are too much for a page. `isOpen`: the last of them is a line without its end, which what comes goes on with.
   * @param {number} count
   * @param {Known | null} known It is left out.
   * @returns {Promise<{ messages: Message[], isOpen: boolean, units: number, before: number, count: number, next: string, closed: boolean } | null>}
   */
  async last(count, known, tries = TRIES) {
    /** @type {Uint8Array[]} */
    const parts = [];
    /** @type {Message[]} */
    const values = [];
    let chunk = await this.#api.read(this.#name, { last: String(count) }, this.#signal);
    for (let bytes = 0; ;) {
      bytes += chunk.bytes.length;
      parts.push(chunk.bytes);
      if (this.#kind === "json") for (const value of this.messagesOf(chunk.bytes)) values.push(value);
      if (chunk.upToDate) break;
      if (bytes > MAX_PAGE_BYTES && count > 1) return known === null ? this.last(fewer(count), null) : null;
      chunk = await this.#api.read(this.#name, { offset: chunk.next }, this.#signal);
    }
    const since = known === null ? 0 : this.#kind === "json" ? known.since : await this.#between(known.at, chunk.next);
    if (since === null && tries > 1) return this.last(count, known, tries - 1);
    const before = known === null ? 0 : known.units + (since ?? known.since);
    const all = joined(parts);
    const units = this.#kind === "json" ? values.length : all.length;
    const wanted = Math.max(0, units - before);
    const { next, closed } = chunk;
    const about = { units, before, count, next, closed };
    if (this.#kind === "json") return { ...about, messages: values.slice(0, wanted), isOpen: false };
    const own = all.subarray(0, wanted);
    return { ...about, messages: this.messagesOf(own), isOpen: this.#kind === "text" && linesEnd(own) < wanted };
  }

  /**
   * The bytes between two places; `null` where no answer ends at the second.
   * @param {string} from
   * @param {string} to
   */
  async #between(from, to) {
    let bytes = 0;
    for (let at = from; at !== to;) {
      const chunk = await this.#api.read(this.#name, { offset: at }, this.#signal);
      bytes += chunk.bytes.length;
      at = chunk.next;
      if (at !== to && (chunk.upToDate || bytes > MAX_PAGE_BYTES)) return null;
    }
    return bytes;
  }

  /** @param {Uint8Array} bytes */
  messagesOf(bytes) {
    if (this.#kind === "json") return splitArray(new TextDecoder().decode(bytes));
    return this.#kind === "text" ? splitLines(bytes) : splitBytes(bytes);
  }
}

/**
 * How many are tried after so many were too much.
 * @param {number} count
 */
export function fewer(count) {
  return Math.ceil(count / 3);
}
