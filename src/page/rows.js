// The rows of messages: bounded in number and in size, drawn once a frame.

import { bytesText } from "./figures.js";
import { button, copy, el } from "./dom.js";
import { hexDump } from "./messages.js";
import { jsonView } from "./json-view.js";

/** @typedef {string | Uint8Array} Message */
/** @typedef {"json" | "text" | "hex"} Mode */
/** @typedef {{ message: Message, text: string, bytes: number, element: HTMLElement | null }} Row */

/** What is kept on the page. */
const MAX_ROWS = 1000;
const MAX_BYTES = 32 * 1024 * 1024;
/** What is drawn in one frame; the rest of a burst is left out. */
const MAX_FRAME_ROWS = 200;
const MAX_PENDING = 1000;
/** What is shown of a long message at first. */
const SHOWN_CHARS = 4096;

export class Rows {
  element = el("div", { className: "rows", role: "log", "aria-label": "Messages" });
  /** Messages that came and were never drawn. */
  skipped = 0;
  /** Messages that made room at the end of the page, since {@link takeDropped}. */
  dropped = 0;
  isPaused = false;
  /** @type {Row[]} In the order of the page. */
  #rows = [];
  /** @type {Message[]} */
  #pending = [];
  /** In characters or bytes, whichever a message has. */
  #pendingLength = 0;
  #bytes = 0;
  #filter = "";
  /** @type {Mode} */
  #mode;
  #frame = 0;
  #onChange;

  /**
   * @param {Mode} mode
   * @param {() => void} onChange
   */
  constructor(mode, onChange) {
    this.#mode = mode;
    this.#onChange = onChange;
  }

  get count() {
    return this.#rows.length;
  }

  get pending() {
    return this.#pending.length;
  }

  get shown() {
    return this.#rows.filter(({ element }) => element !== null && !element.hidden).length;
  }

  /** @param {Mode} mode */
  set mode(mode) {
    this.#mode = mode;
    for (const row of this.#rows) this.#draw(row);
  }

  /** @param {string} filter */
  set filter(filter) {
    this.#filter = filter.toLowerCase();
    for (const row of this.#rows) if (row.element !== null) row.element.hidden = !this.#isWanted(row);
    this.#onChange();
  }

  /**
   * Adds messages below the others, in their order on the page.
   * @param {readonly Message[]} messages
   */
  addBelow(messages) {
    const rows = messages.map((message) => this.#rowOf(message));
    this.#rows.push(...rows);
    this.element.append(...rows.map((row) => this.#draw(row)));
    this.#onChange();
  }

  /**
   * Puts live messages, oldest first, above the others, the newest on top, with the next frame.
   * @param {readonly Message[]} messages
   */
  addLive(messages) {
    for (const message of messages) {
      this.#pending.push(message);
      this.#pendingLength += message.length;
    }
    let excess = Math.max(0, this.#pending.length - MAX_PENDING);
    for (const message of this.#pending.slice(0, excess)) this.#pendingLength -= message.length;
    for (; this.#pendingLength > MAX_BYTES && excess < this.#pending.length - 1; excess += 1)
      this.#pendingLength -= this.#pending[excess]?.length ?? 0;
    this.#pending.splice(0, excess);
    this.skipped += excess;
    this.resume();
  }

  resume() {
    if (this.#frame === 0 && !this.isPaused) this.#frame = requestAnimationFrame(() => this.#flush());
    this.#onChange();
  }

  takeDropped() {
    const { dropped } = this;
    this.dropped = 0;
    return dropped;
  }

  stop() {
    cancelAnimationFrame(this.#frame);
  }

  #flush() {
    this.#frame = 0;
    if (this.isPaused) return;
    const excess = Math.max(0, this.#pending.length - MAX_FRAME_ROWS);
    this.skipped += excess;
    const rows = this.#pending
      .slice(excess)
      .reverse()
      .map((message) => this.#rowOf(message));
    this.#pending = [];
    this.#pendingLength = 0;
    this.#rows.unshift(...rows);
    this.element.prepend(...rows.map((row) => this.#draw(row)));
    while (this.#rows.length > MAX_ROWS || (this.#bytes > MAX_BYTES && this.#rows.length > 1)) {
      const last = this.#rows.pop();
      this.dropped += 1;
      this.#bytes -= last?.bytes ?? 0;
      last?.element?.remove();
    }
    this.#onChange();
  }

  /**
   * @param {Message} message
   * @returns {Row}
   */
  #rowOf(message) {
    const isText = typeof message === "string";
    const bytes = isText ? new TextEncoder().encode(message).length : message.length;
    this.#bytes += bytes;
    return { message, text: isText ? message : new TextDecoder().decode(message), bytes, element: null };
  }

  /** @param {Row} row */
  #isWanted({ text }) {
    return this.#filter === "" || text.toLowerCase().includes(this.#filter);
  }

  /**
   * @param {Row} row
   * @returns {HTMLElement}
   */
  #draw(row) {
    const element = el(
      "article",
      { className: `row ${this.#mode}`, tabIndex: -1, hidden: !this.#isWanted(row) },
      el("div", { className: "body" }, this.#bodyOf(row)),
      el(
        "div",
        { className: "tools" },
        el("span", {}, bytesText(row.bytes)),
        button("Copy", () => void copy(row.text, "Message")),
      ),
    );
    row.element?.replaceWith(element);
    row.element = element;
    return element;
  }

  /**
   * @param {Row} row
   * @returns {Node}
   */
  #bodyOf({ message, text, bytes: size }) {
    const isLong = text.length > SHOWN_CHARS;
    if (this.#mode === "json" && text.length < 1024 * 1024) return jsonView(text);
    if (this.#mode !== "hex")
      return isLong ? cut(text.slice(0, SHOWN_CHARS), () => text, size) : document.createTextNode(text);
    const bytes = typeof message === "string" ? new TextEncoder().encode(message) : message;
    const first = hexDump(bytes.subarray(0, 1024));
    return bytes.length > 1024
      ? cut(first, () => hexDump(bytes.subarray(0, 256 * 1024)), bytes.length)
      : document.createTextNode(first);
  }
}

/**
 * The beginning of something long, and a way to all of it.
 * @param {string} beginning
 * @param {() => string} whole
 * @param {number} bytes
 */
function cut(beginning, whole, bytes) {
  const text = document.createTextNode(`${beginning}…`);
  const more = button(`Show all ${bytesText(bytes)}`, () => {
    text.data = whole();
    more.remove();
  });
  return el("div", {}, text, el("div", {}, more));
}
