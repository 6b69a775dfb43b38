// The messages of a stream: the newest first and live, or from a place on.

import { againButton } from "./dialogs.js";
import { button, complain, el, endComplaint, whileDisabled } from "./dom.js";
import { numberText } from "./figures.js";
import { goTo } from "./go-to.js";
import { followStream } from "./live.js";
import { fromBase64, kindOf, linesEnd, splitArray } from "./messages.js";
import { fewer, PAGE_MESSAGES, PageReader } from "./reader.js";
import { Rows } from "./rows.js";

/** @typedef {import("./rows.js").Mode} Mode */
/**
 * What is told of a stream: that it has more, that it has ended, and that it is to be looked for again.
 * @typedef {{ onNews: () => void, onEnd: (how: "closed" | "gone") => void, onAgain: () => void }} Told
 */

const RATE_MS = 1000;
/** Whoever listens is told what a filter leaves once nothing was typed for so long. */
const FILTERING_MS = 500;
/** What is added at once of a page: one append may have any number of lines. */
const MAX_ADDED = 1000;
/** Appends of text may be parts of lines: a first page of fewer lines and bytes than these is read again, with more of them. */
const FIRST_LINES = 50;
const FIRST_TEXT_BYTES = 16 * 1024;

export class MessagesPane {
  element = el("section", { className: "messages" });
  #api;
  #entry;
  #query;
  #go;
  #onNews;
  #onEnd;
  #onAgain;
  #ending = new AbortController();
  /** @type {Rows} */
  #rows;
  #reader;
  /** What is shown, from the oldest on. */
  #known = { units: 0, at: "", since: 0 };
  /** @type {import("./rows.js").Message[]} What was read and is not shown yet, the newest last. */
  #rest = [];
  /** Nothing is before what was read. */
  #isWhole = false;
  #count = PAGE_MESSAGES;
  /** Whether the newest message is a line without its end. */
  #isOpen = false;
  #came = 0;
  #rate = 0;
  /** @type {import("./live.js").LiveState | "reading" | "read"} */
  #state = "reading";
  #detail = "";
  #said = el("span", { role: "status" });
  #filtered = el("span", { role: "status", className: "unseen" });
  #filtering = 0;
  #figures = el("span", {});
  #status = el("span", { className: "status" }, this.#said, this.#figures);
  #pause = button("Pause", () => this.togglePause(), { "aria-keyshortcuts": "p" });
  #more = button("Earlier messages", () => void this.#older());
  #ticker = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./api.js").Entry} entry
   * @param {Record<string, string>} query Where it is, and how it is shown.
   * @param {(query: Record<string, string>, isQuiet?: boolean) => void} go Shows another place; quiet: writes it down alone.
   * @param {Told} told
   */
  constructor(api, entry, query, go, { onNews, onEnd, onAgain }) {
    this.#api = api;
    this.#entry = entry;
    this.#query = query;
    this.#go = go;
    this.#onNews = onNews;
    this.#onEnd = onEnd;
    this.#onAgain = onAgain;
    this.#reader = new PageReader(api, entry.name, entry.contentType, this.#ending.signal);
    this.#rows = new Rows(this.#mode, () => this.#tell());
    this.#rows.filter = query["filter"] ?? "";
    this.#more.hidden = true;
    this.element.append(this.#toolbar(), this.#rows.element, el("div", { className: "more" }, this.#more));
  }

  async start() {
    this.#tell();
    try {
      await (this.#isForward ? this.#forward(this.#place) : this.#begin());
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      this.#setState("read", "");
      complain(error);
      const why = error instanceof Error ? error.message : String(error);
      this.element.append(
        el(
          "p",
          { className: "empty" },
          why,
          " ",
          againButton(error, () => this.#onAgain()),
        ),
      );
    }
  }

  stop() {
    this.#ending.abort();
    this.#rows.stop();
    clearInterval(this.#ticker);
  }

  togglePause() {
    if (this.#isForward) return;
    if (this.#state === "gone") return this.#onAgain();
    this.#rows.isPaused = !this.#rows.isWaiting;
    if (!this.#rows.isPaused) getSelection()?.removeAllRanges();
    this.#rows.resume();
  }

  /** @returns {Mode} */
  get #mode() {
    const kind = kindOf(this.#entry.contentType);
    const asked = this.#query["show"];
    if (asked === "text" || asked === "hex" || (asked === "json" && kind !== "bytes")) return asked;
    return kind === "bytes" ? "hex" : kind;
  }

  get #isForward() {
    return "at" in this.#query || "since" in this.#query;
  }

  /** @returns {Record<string, string>} */
  get #place() {
    const { at, since } = this.#query;
    return since === undefined ? { offset: at ?? "-1" } : { since };
  }

  #toolbar() {
    const modes = kindOf(this.#entry.contentType) === "bytes" ? ["text", "hex"] : ["json", "text", "hex"];
    const mode = el(
      "select",
      { "aria-label": "Show as", change: () => this.#show(mode.value) },
      ...modes.map((one) =>
        el(
          "option",
          { value: one, selected: one === this.#mode },
          one === "hex" ? "Hex" : one === "json" ? "JSON" : "Text",
        ),
      ),
    );
    const filter = el("input", {
      type: "search",
      placeholder: "Filter what is shown",
      "aria-label": "Filter",
      value: this.#query["filter"] ?? "",
      input: () => this.#setFilter(filter.value),
    });
    return el(
      "div",
      { className: "toolbar" },
      goTo(() => this.#query, this.#go),
      filter,
      mode,
      this.#isForward ? null : this.#pause,
      this.#status,
      this.#filtered,
    );
  }

  /** @param {string} mode */
  #show(mode) {
    this.#query = { ...this.#query, show: mode };
    this.#rows.mode = this.#mode;
    this.#go(this.#query, true);
  }

  /** @param {string} filter */
  #setFilter(filter) {
    this.#rows.filter = filter;
    clearTimeout(this.#filtering);
    this.#filtering = setTimeout(() => (this.#filtered.textContent = this.#shown()), FILTERING_MS);
    this.#query = { ...this.#query, filter };
    this.#go(this.#query, true);
  }

  /** The newest page, and what comes. */
  async #begin() {
    const page = await this.#first();
    if (page === null) return;
    this.#count = page.count;
    this.#isOpen = page.isOpen;
    this.#known = { units: page.units, at: page.next, since: 0 };
    this.#isWhole =
      kindOf(this.#entry.contentType) === "json"
        ? page.units < page.count
        : page.units >= (this.#entry.bytes ?? Infinity);
    this.#addEarlier(page.messages, false);
    this.#setState(page.closed ? "closed" : "connecting", "");
    if (page.closed) return;
    this.#ticker = setInterval(() => this.#measure(), RATE_MS);
    const follower = {
      onData: (/** @type {string} */ data, /** @type {boolean} */ isBase64) => this.#take(data, isBase64),
      onState: (/** @type {import("./live.js").LiveState} */ state, /** @type {string} */ detail) =>
        this.#hear(state, detail),
    };
    await followStream(this.#api, this.#entry.name, page.next, this.#ending.signal, follower);
  }

  /** The newest so many messages; where it is not said how many, of text enough appends to be read. */
  async #first() {
    const asked = Number(this.#query["last"]);
    let page = await this.#reader.last(asked || PAGE_MESSAGES, null);
    const isText = kindOf(this.#entry.contentType) === "text";
    for (let units = -1; !asked && isText && page !== null && page.units !== units;) {
      if (page.messages.length >= FIRST_LINES || page.units >= FIRST_TEXT_BYTES) break;
      units = page.units;
      page = await this.#reader.last(10 * page.count, null);
    }
    return page;
  }

  /**
   * @param {string} data
   * @param {boolean} isBase64
   */
  #take(data, isBase64) {
    const kind = kindOf(this.#entry.contentType);
    const bytes = kind === "json" ? null : isBase64 ? fromBase64(data) : new TextEncoder().encode(data);
    const messages = bytes === null ? splitArray(data) : this.#reader.messagesOf(bytes);
    this.#came += messages.length;
    this.#known.since += bytes === null ? messages.length : bytes.length;
    this.#count += bytes === null ? messages.length : 1;
    this.#rows.addLive(messages, this.#isOpen);
    if (kind === "text" && bytes !== null && bytes.length > 0) this.#isOpen = linesEnd(bytes) < bytes.length;
    this.#onNews();
  }

  /**
   * @param {import("./live.js").LiveState} state
   * @param {string} detail
   */
  #hear(state, detail) {
    if (state === "closed") this.#onNews();
    if (state === "closed" || state === "gone") this.#onEnd(state);
    // Deleted, and perhaps made anew: that is another stream.
    if (state === "gone") this.#pause.textContent = "Look again";
    this.#setState(state, detail);
  }

  #measure() {
    this.#rate = this.#came;
    this.#came = 0;
    // Nobody can listen to more than that, nor to a whole page.
    this.#rows.element.ariaLive = this.#rate > 3 ? "off" : "polite";
    this.#tell();
  }

  /**
   * Shows the newest of what was read, below the others.
   * @param {import("./rows.js").Message[]} messages The oldest first.
   * @param {boolean} isOpen Whether the newest of them is the beginning of the oldest that is shown.
   */
  #addEarlier(messages, isOpen) {
    endComplaint();
    this.#rest = messages;
    this.#rows.element.ariaLive = "off";
    this.#rows.addBelow(messages.splice(-MAX_ADDED).reverse(), isOpen);
    this.#more.hidden = this.#isWhole && messages.length === 0;
  }

  /** The page before what is shown: more appends may have come than events told of them, and few may be too much. */
  async #before() {
    let step = Math.max(PAGE_MESSAGES, kindOf(this.#entry.contentType) === "text" ? this.#count : 0);
    for (let units = -1; ;) {
      const count = this.#count + step;
      const page = await this.#reader.last(count, this.#known);
      if (page === null && step > 1 && units < 0) {
        step = fewer(step);
        continue;
      }
      if (page === null || page.units > page.before || page.units === units) return { page, count };
      units = page.units;
      step *= 4;
    }
  }

  async #older() {
    const dropped = this.#rows.takeDropped();
    if (dropped === 0 && this.#rest.length > 0) return this.#addEarlier(this.#rest, false);
    // Of live text it is not known how many bytes it took.
    if (dropped > 0 && kindOf(this.#entry.contentType) !== "json") return this.#endHere();
    if (dropped > 0) {
      // What was read and not shown yet is before what made room: it is read again.
      const again = dropped + this.#rest.length;
      this.#rest = [];
      this.#known.units -= again;
      this.#count -= again;
    }
    await whileDisabled(this.#more, async () => {
      const { page, count } = await this.#before();
      if (page === null) return this.#endHere();
      this.#count = count;
      this.#isWhole = page.units <= page.before;
      if (!this.#isWhole) this.#known = { units: page.units, at: page.next, since: 0 };
      this.#addEarlier(page.messages, page.isOpen);
    }).catch(complain);
  }

  #endHere() {
    this.#more.replaceWith(el("p", {}, "What is before is too much for this page: go to an offset, or to the start."));
  }

  /**
   * One page from a place on, the oldest first.
   * @param {Record<string, string>} place
   */
  async #forward(place) {
    this.#setState("reading", "");
    const chunk = await this.#reader.forward(place);
    this.#addSome(chunk.messages, 0, chunk);
  }

  /**
   * Some of an answer; the next step shows more of it, or reads on.
   * @param {readonly import("./rows.js").Message[]} messages
   * @param {number} from
   * @param {import("./api.js").Chunk} chunk
   */
  #addSome(messages, from, chunk) {
    endComplaint();
    const to = from + PAGE_MESSAGES;
    this.#rows.addBelow(messages.slice(from, to));
    const isDone = to >= messages.length;
    this.#more.hidden = isDone && chunk.upToDate;
    const next = button("More", () => {
      if (!isDone) return this.#addSome(messages, to, chunk);
      const forward = () => this.#forward({ offset: chunk.next });
      whileDisabled(next, forward, () => this.#more).catch((error) => {
        this.#setState("read", "");
        complain(error);
      });
    });
    next.hidden = this.#more.hidden;
    const wasFocused = document.activeElement === this.#more;
    this.#more.replaceWith(next);
    this.#more = next;
    if (wasFocused) next.focus({ preventScroll: true });
    this.#setState("read", isDone && chunk.upToDate ? "up to the tail" : "");
  }

  /**
   * @param {import("./live.js").LiveState | "reading" | "read"} state
   * @param {string} detail
   */
  #setState(state, detail) {
    this.#state = state;
    this.#detail = detail;
    this.#tell();
  }

  #shown() {
    const { shown, count } = this.#rows;
    return `${shown === count ? "" : `${numberText(shown)} of `}${numberText(count)} shown`;
  }

  #tell() {
    const rows = this.#rows;
    const { isWaiting } = rows;
    if (this.#state !== "gone") this.#pause.textContent = isWaiting ? "Resume" : "Pause";
    if (rows.dropped > 0) this.#more.hidden = false;
    const said = [STATES[this.#state], this.#detail, isWaiting ? "paused" : ""].filter((part) => part !== "");
    const figures = [];
    if (this.#state === "live" && !isWaiting && this.#rate > 0) figures.push(`${numberText(this.#rate)} messages/s`);
    if (isWaiting && rows.pending > 0) figures.push(`${numberText(rows.pending)} new`);
    if (rows.skipped > 0) figures.push(`${numberText(rows.skipped)} passed unseen`);
    figures.push(this.#shown());
    const words = said.join(" · ");
    // A screen reader says what changes there: not each figure.
    if (this.#said.textContent !== words) this.#said.textContent = words;
    this.#figures.textContent = (words === "" ? "" : " · ") + figures.join(" · ");
    this.#status.dataset["state"] = this.#state;
  }
}

const STATES = {
  connecting: "connecting",
  live: "live",
  waiting: "trying again",
  closed: "closed for good",
  gone: "ended",
  reading: "reading",
  read: "",
};
