// The messages of a stream: the newest first and live, or from a place on.

import { againButton } from "./dialogs.js";
import { button, complain, el, endComplaint } from "./dom.js";
import { numberText } from "./figures.js";
import { followStream } from "./live.js";
import { fromBase64, kindOf, splitArray, splitLines } from "./messages.js";
import { fewer, PAGE_MESSAGES, PageReader } from "./reader.js";
import { Rows } from "./rows.js";

/** @typedef {import("./rows.js").Mode} Mode */

const RATE_MS = 1000;
/** What is added at once of a page: one append may have any number of lines. */
const MAX_ADDED = 1000;

export class MessagesPane {
  element = el("section", { className: "messages" });
  #api;
  #entry;
  #query;
  #go;
  #onNews;
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
  #came = 0;
  #rate = 0;
  /** @type {import("./live.js").LiveState | "reading"} */
  #state = "reading";
  #detail = "";
  #said = el("span", { role: "status" });
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
   * @param {{ onNews: () => void, onAgain: () => void }} told Of news; and that the stream is to be looked for again.
   */
  constructor(api, entry, query, go, { onNews, onAgain }) {
    this.#api = api;
    this.#entry = entry;
    this.#query = query;
    this.#go = go;
    this.#onNews = onNews;
    this.#onAgain = onAgain;
    this.#reader = new PageReader(api, entry.name, entry.contentType, this.#ending.signal);
    this.#rows = new Rows(this.#mode, () => this.#tell());
    this.#rows.filter = query["filter"] ?? "";
    this.#more.hidden = true;
    this.element.append(this.#toolbar(), this.#rows.element, el("div", { className: "more" }, this.#more));
  }

  async start() {
    try {
      await (this.#isForward ? this.#forward(this.#place) : this.#begin());
    } catch (error) {
      if (this.#ending.signal.aborted) return;
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
    this.#rows.isPaused = !this.#rows.isPaused;
    this.#pause.textContent = this.#rows.isPaused ? "Resume" : "Pause";
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
    this.#query = { ...this.#query, filter };
    this.#go(this.#query, true);
  }

  /** The newest page, and what comes. */
  async #begin() {
    const last = Number(this.#query["last"] ?? PAGE_MESSAGES) || PAGE_MESSAGES;
    const page = await this.#reader.last(last, null);
    if (page === null) return;
    this.#count = page.count;
    this.#known = { units: page.units, at: page.next, since: 0 };
    this.#isWhole =
      kindOf(this.#entry.contentType) === "json"
        ? page.units < page.count
        : page.units >= (this.#entry.bytes ?? Infinity);
    this.#addEarlier(page.messages);
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

  /**
   * @param {string} data
   * @param {boolean} isBase64
   */
  #take(data, isBase64) {
    const isJson = kindOf(this.#entry.contentType) === "json";
    const bytes = isBase64 ? fromBase64(data) : null;
    const messages = isJson ? splitArray(data) : bytes !== null ? this.#reader.messagesOf(bytes) : splitLines(data);
    this.#came += messages.length;
    this.#known.since += isJson ? messages.length : (bytes ?? new TextEncoder().encode(data)).length;
    if (isJson) this.#count += messages.length;
    else this.#count += 1;
    this.#rows.addLive(messages);
    this.#onNews();
  }

  /**
   * @param {import("./live.js").LiveState} state
   * @param {string} detail
   */
  #hear(state, detail) {
    if (state === "closed") this.#onNews();
    // Deleted, and perhaps made anew: that is another stream.
    if (state === "gone") this.#pause.textContent = "Look again";
    this.#setState(state, detail);
  }

  #measure() {
    this.#rate = this.#came;
    this.#came = 0;
    this.#tell();
  }

  /**
   * Shows the newest of what was read, below the others.
   * @param {import("./rows.js").Message[]} messages The oldest first.
   */
  #addEarlier(messages) {
    endComplaint();
    this.#rest = messages;
    this.#rows.addBelow(messages.splice(-MAX_ADDED).reverse());
    this.#more.hidden = this.#isWhole && messages.length === 0;
  }

  /** The page before what is shown: more appends may have come than events told of them, and few may be too much. */
  async #before() {
    let step = PAGE_MESSAGES;
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
    if (dropped === 0 && this.#rest.length > 0) return this.#addEarlier(this.#rest);
    // Of live text it is not known how many bytes it took.
    if (dropped > 0 && kindOf(this.#entry.contentType) !== "json") return this.#endHere();
    if (dropped > 0) {
      // What was read and not shown yet is before what made room: it is read again.
      const again = dropped + this.#rest.length;
      this.#rest = [];
      this.#known.units -= again;
      this.#count -= again;
    }
    this.#more.disabled = true;
    try {
      const { page, count } = await this.#before();
      if (page === null) return this.#endHere();
      this.#count = count;
      this.#isWhole = page.units <= page.before;
      if (!this.#isWhole) this.#known = { units: page.units, at: page.next, since: 0 };
      this.#addEarlier(page.messages);
    } catch (error) {
      complain(error);
    } finally {
      this.#more.disabled = false;
    }
  }

  #endHere() {
    this.#more.replaceWith(el("p", {}, "What is before is too much for this page: go to an offset, or to the start."));
  }

  /**
   * One page from a place on, the oldest first.
   * @param {Record<string, string>} place
   */
  async #forward(place) {
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
      next.disabled = true;
      this.#forward({ offset: chunk.next }).catch((error) => ((next.disabled = false), complain(error)));
    });
    next.hidden = this.#more.hidden;
    this.#more.replaceWith(next);
    this.#more = next;
    this.#setState("reading", isDone && chunk.upToDate ? "up to the tail" : "");
  }

  /**
   * @param {import("./live.js").LiveState | "reading"} state
   * @param {string} detail
   */
  #setState(state, detail) {
    this.#state = state;
    this.#detail = detail;
    this.#tell();
  }

  #tell() {
    const rows = this.#rows;
    if (rows.dropped > 0) this.#more.hidden = false;
    const said = [STATES[this.#state], this.#detail, rows.isPaused ? "paused" : ""].filter((part) => part !== "");
    const figures = [];
    if (this.#state === "live" && !rows.isPaused && this.#rate > 0)
      figures.push(`${numberText(this.#rate)} messages/s`);
    if (rows.isPaused && rows.pending > 0) figures.push(`${numberText(rows.pending)} new`);
    if (rows.skipped > 0) figures.push(`${numberText(rows.skipped)} passed unseen`);
    figures.push(
      rows.shown === rows.count
        ? `${numberText(rows.count)} shown`
        : `${numberText(rows.shown)} of ${numberText(rows.count)} shown`,
    );
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
  reading: "",
};

/**
 * Where to go in the stream.
 * @param {() => Record<string, string>} current
 * @param {(query: Record<string, string>) => void} go
 */
function goTo(current, go) {
  const query = current();
  const kinds = { last: "Last", at: "From offset", since: "Since" };
  const now = query["since"] !== undefined ? "since" : query["at"] !== undefined ? "at" : "last";
  const kind = el(
    "select",
    { "aria-label": "Go to", change: () => suit() },
    ...Object.entries(kinds).map(([value, label]) => el("option", { value, selected: value === now }, label)),
  );
  const place = el("input", { id: "place", value: query[now] ?? "", "aria-label": "Place", spellcheck: false });
  const suit = () => {
    const isCount = kind.value === "last";
    place.pattern = isCount ? "\\s*[1-9][0-9]*\\s*" : ".*";
    place.title = isCount ? "How many messages" : "";
    place.placeholder =
      { last: "100", at: "-1 is the start", since: new Date().toISOString().slice(0, 19) + "Z" }[kind.value] ?? "";
  };
  suit();
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const value = place.value.trim() || (kind.value === "at" ? "-1" : "");
    const { show = "", filter = "" } = current();
    go({ show, filter, ...(value === "" ? {} : { [kind.value]: value }) });
  };
  return el("form", { className: "goto", submit }, kind, place, el("button", { type: "submit" }, "Go"));
}
