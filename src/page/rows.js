// The rows of messages: bounded in number and in size, drawn once a frame.

import { bytesText } from "./figures.js";
import { button, byId, copy, el, inPlace } from "./dom.js";
import { hexDump, joined } from "./messages.js";
import { jsonView } from "./json-view.js";

/** A value of JSON as it was written, or bytes: of a line, or of a piece. @typedef {string | Uint8Array} Message */
/** @typedef {"json" | "text" | "hex"} Mode */
/** @typedef {{ message: Message, text: string, bytes: number, element: HTMLElement | null, isExpanded: boolean }} Row */

/** What is kept on the page. */
const MAX_ROWS = 1000;
const MAX_BYTES = 32 * 1024 * 1024;
/** What is drawn in one frame; the rest of a burst is left out. */
const MAX_FRAME_ROWS = 200;
const MAX_PENDING = 1000;
/** What is shown of a long message at first. */
const SHOWN_CHARS = 4096;
const SHOWN_BYTES = 1024;
/**
 * And when all is asked for, in characters or bytes: one line of more stops the page for seconds. A line that grows
 * beyond it goes on in a row of its own.
 */
const MAX_SHOWN = 256 * 1024;
/** Whether what comes above what is seen does not move it; if not, that is done here. */
const KEEPS_PLACE = CSS.supports("overflow-anchor", "auto");

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
  /** Whether the first of them goes on with the message on top. */
  #isContinued = false;
  #bytes = 0;
  #filter = "";
  /** @type {Mode} */
  #mode;
  #frame = 0;
  #onChange;
  #ending = new AbortController();

  /**
   * @param {Mode} mode
   * @param {() => void} onChange
   */
  constructor(mode, onChange) {
    this.#mode = mode;
    this.#onChange = onChange;
    document.addEventListener("selectionchange", () => this.#pending.length > 0 && this.resume(), this.#ending);
  }

  /** Whether nothing is drawn: it is paused, or some of it is selected, and would move or go. */
  get #isHeld() {
    const selection = getSelection();
    return this.isPaused || (selection?.isCollapsed === false && this.element.contains(selection.anchorNode));
  }

  /** Whether somebody may miss something for that. */
  get isWaiting() {
    return this.isPaused || (this.#pending.length > 0 && this.#isHeld);
  }

  get count() {
    return this.#rows.length;
  }

  get pending() {
    return this.#pending.length - (this.#isContinued ? 1 : 0);
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
   * @param {boolean} [isContinued] Whether the message at the end of the page goes on with the first of them.
   */
  addBelow(messages, isContinued = false) {
    const last = this.#rows.at(-1);
    const [first] = messages;
    const isOne = isContinued && last !== undefined && first !== undefined && this.#extend(last, first, last.message);
    const rows = (isOne ? messages.slice(1) : messages).map((message) => this.#rowOf(message));
    this.#rows.push(...rows);
    this.element.append(...rows.map((row) => this.#draw(row)));
    this.#onChange();
  }

  /**
   * Puts live messages, oldest first, above the others, the newest on top, with the next frame.
   * @param {readonly Message[]} messages
   * @param {boolean} [isContinued] Whether the first of them goes on with the newest message so far.
   */
  addLive(messages, isContinued = false) {
    const newest = this.#pending.at(-1);
    const [first] = messages;
    if (first === undefined) return;
    if (newest === undefined) this.#isContinued = isContinued;
    const whole = isContinued && newest !== undefined ? together(newest, first) : null;
    if (whole !== null) this.#pending.splice(-1, 1, whole);
    for (const message of whole === null ? messages : messages.slice(1)) this.#pending.push(message);
    for (const message of messages) this.#pendingLength += message.length;
    let excess = Math.max(0, this.#pending.length - MAX_PENDING);
    for (const message of this.#pending.slice(0, excess)) this.#pendingLength -= message.length;
    for (; this.#pendingLength > MAX_BYTES && excess < this.#pending.length - 1; excess += 1)
      this.#pendingLength -= this.#pending[excess]?.length ?? 0;
    this.#pending.splice(0, excess);
    this.#isContinued &&= excess === 0;
    this.skipped += excess;
    this.resume();
  }

  resume() {
    if (this.#frame === 0 && !this.#isHeld) this.#frame = requestAnimationFrame(() => this.#flush());
    this.#onChange();
  }

  takeDropped() {
    const { dropped } = this;
    this.dropped = 0;
    return dropped;
  }

  stop() {
    this.#ending.abort();
    cancelAnimationFrame(this.#frame);
  }

  #flush() {
    this.#frame = 0;
    if (this.#isHeld) return this.#onChange();
    const excess = Math.max(0, this.#pending.length - MAX_FRAME_ROWS);
    this.skipped += excess;
    const messages = this.#pending.slice(excess);
    const [newest] = this.#rows;
    const [first] = messages;
    const isContinued = this.#isContinued && excess === 0 && newest !== undefined && first !== undefined;
    if (isContinued && this.#extend(newest, newest.message, first)) messages.shift();
    const rows = messages.reverse().map((message) => this.#rowOf(message));
    this.#isContinued = false;
    this.#pending = [];
    this.#pendingLength = 0;
    const put = () => this.element.prepend(...rows.map((row) => this.#draw(row)));
    if (KEEPS_PLACE) put();
    else inPlace(byId("main"), () => newest?.element, put);
    this.#rows.unshift(...rows);
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
    const text = isText ? message : new TextDecoder("utf-8", { ignoreBOM: true }).decode(message);
    return { message, text, bytes, element: null, isExpanded: false };
  }

  /**
   * Makes one message of two, in a row that is there; `false` where they stay two.
   * @param {Row} row
   * @param {Message} beginning
   * @param {Message} end
   */
  #extend(row, beginning, end) {
    const whole = together(beginning, end);
    if (whole === null) return false;
    this.#bytes -= row.bytes;
    const { message, text, bytes } = this.#rowOf(whole);
    Object.assign(row, { message, text, bytes });
    this.#draw(row);
    return true;
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
  #bodyOf(row) {
    const { message, text } = row;
    if (this.#mode === "json" && text.length < 1024 * 1024) return jsonView(text);
    if (this.#mode !== "hex") return shown(row, text.length, SHOWN_CHARS, (length) => text.slice(0, length));
    const bytes = typeof message === "string" ? new TextEncoder().encode(message) : message;
    return shown(row, bytes.length, SHOWN_BYTES, (length) => hexDump(bytes.subarray(0, length)));
  }
}

/**
 * A message, or the beginning of a long one and a way to more of it.
 * @param {Row} row
 * @param {number} length Of all, in characters or bytes.
 * @param {number} least What is shown before more is asked for.
 * @param {(length: number) => string} beginning
 * @returns {Node}
 */
function shown(row, length, least, beginning) {
  const limit = row.isExpanded ? MAX_SHOWN : least;
  if (length <= limit) return document.createTextNode(beginning(length));
  const label = `Show ${length <= MAX_SHOWN ? "all" : "more of"} ${bytesText(row.bytes)}`;
  const more = () => {
    row.isExpanded = true;
    element.replaceWith(shown(row, length, least, beginning));
    row.element?.focus({ preventScroll: true });
  };
  const rest = row.isExpanded ? "Copy has all of it." : button(label, more);
  const element = el("div", {}, `${beginning(limit)}…`, el("div", {}, rest));
  return element;
}

/**
 * Two parts of a line as one; `null` where that is too long for a row, or they are values.
 * @param {Message} beginning
 * @param {Message} end
 */
function together(beginning, end) {
  if (typeof beginning === "string" || typeof end === "string") return null;
  return beginning.length + end.length > MAX_SHOWN ? null : joined([beginning, end]);
}
