// One stream: its messages, what it is, and how to read it.

import { aboutView, codeView, requestsOf } from "./about.js";
import { againButton, askClose, askDelete, askFork } from "./dialogs.js";
import { button, complain, el, endComplaint, keepFocus, notice } from "./dom.js";
import { bytesText } from "./figures.js";
import { asLines, joinedArrays, kindOf } from "./messages.js";
import { MessagesPane } from "./messages-pane.js";
import { nameText, streamRoute, visit } from "./route.js";

/** @typedef {import("./api.js").Entry} Entry */

/** What is downloaded by the page; more is for `streamdir cat`. */
const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024;
/** So long after news it is asked how large the stream is. */
const FRESHEN_MS = 1000;
const PLACEHOLDERS = {
  json: 'A JSON value, like {"hello":"world"}',
  text: "What to append, as a line: a line feed is added",
  bytes: "What to append",
};
/** What can't be done any more with a stream that has ended, and why. */
const ENDED = /** @type {const} */ ({
  closed: [".composer textarea, .composer button, .actions .close", "It is closed."],
  gone: [".composer textarea, .composer button, .actions button", "This stream is gone: look again."],
});
/** What was typed to be appended and was not sent, by the stream: a view may be left and come back to. @type {Map<string, string>} */
const drafts = new Map();
/** The views of a stream, by what the fragment calls them. */
export const TABS = { "": "Messages", about: "About", code: "Code" };

export class StreamView {
  element = el("section", { className: "stream" });
  /** @type {MessagesPane | null} */
  #pane = null;
  #api;
  #name;
  #query;
  #list;
  #focused;
  #badges = el("p", { className: "badges" });
  #freshening = 0;
  #ending = new AbortController();
  /** Whoever asks twice to look again gets one answer. */
  #starts = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {string} name
   * @param {Record<string, string>} query
   * @param {import("./stream-list.js").StreamList} list
   * @param {"tab" | "composer" | "place" | ""} focused Where whoever has come goes on with the keyboard.
   */
  constructor(api, name, query, list, focused) {
    this.#focused = focused;
    this.#api = api;
    this.#name = name;
    this.#query = query;
    this.#list = list;
  }

  async start() {
    const own = (this.#starts += 1);
    const waits = el("p", { className: "empty late" }, "Looking for it…");
    if (this.element.firstChild === null) this.element.replaceChildren(el("h1", {}, nameText(this.#name)), waits);
    try {
      const entry = await this.#api.look(this.#name, this.#ending.signal);
      const { allow } = await this.#api.server();
      if (this.#ending.signal.aborted || own !== this.#starts) return;
      if (entry.bytes !== null) this.#list.learn(entry);
      await this.#draw(entry, allow);
    } catch (error) {
      if (this.#ending.signal.aborted || own !== this.#starts) return;
      this.#missing(error);
    }
  }

  stop() {
    this.#ending.abort();
    clearTimeout(this.#freshening);
    this.#pane?.stop();
  }

  togglePause() {
    this.#pane?.togglePause();
  }

  /** @param {unknown} error */
  #missing(error) {
    const why = error instanceof Error ? error.message : String(error);
    const again = againButton(error, () => void this.start());
    const said = el("p", { className: "empty", role: "alert" }, why, " ", again);
    this.#replace(el("h1", {}, nameText(this.#name)), said);
  }

  /**
   * @param {Entry} entry
   * @param {string[]} allow What may be done with some stream.
   */
  async #draw(entry, allow) {
    const tab = this.#query["tab"] ?? "";
    const tabs = el("nav", { className: "tabs", "aria-label": "Views" }, ...this.#links(tab));
    this.#replace(this.#head(entry, allow), tabs);
    if (this.#focused === "tab") this.#focus("nav a[aria-current]");
    if (tab === "about") return this.element.append(await aboutView(this.#api, entry, this.#list.entries));
    if (tab === "code") {
      const requests = requestsOf(this.#api.urlOf(entry.name), this.#query, this.#api.token !== "", entry.contentType);
      return this.element.append(codeView(requests));
    }
    const go = (/** @type {Record<string, string>} */ query, isQuiet = false) => {
      this.#query = query;
      const route = streamRoute(entry.name, query);
      if (!isQuiet) return visit(route);
      history.replaceState(null, "", route);
      tabs.replaceChildren(...this.#links(tab));
    };
    const told = {
      onNews: () => this.#freshen(entry),
      onEnd: (/** @type {"closed" | "gone"} */ how) => this.#disable(how),
      onAgain: () => this.#again(),
    };
    const pane = (this.#pane = new MessagesPane(this.#api, entry, this.#query, go, told));
    this.element.append(this.#composer(entry), pane.element);
    if (this.#focused === "composer") this.#focus("textarea");
    if (this.#focused === "place") this.#focus("#place");
    await pane.start();
  }

  /** @param {...HTMLElement} parts */
  #replace(...parts) {
    const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
    if (focused?.tagName === "TEXTAREA") this.#focused = "composer";
    this.element.replaceChildren(...parts);
    if (focused !== null) keepFocus();
  }

  /** @param {string} selector Of what gets the focus, once. */
  #focus(selector) {
    this.#focused = "";
    /** @type {HTMLElement | null} */ (this.element.querySelector(selector))?.focus();
  }

  /**
   * @param {Entry} entry
   * @param {string[]} allow
   */
  #head(entry, allow) {
    const { name, closed, may } = entry;
    const again = () => this.#again();
    const unless = (/** @type {boolean} */ isAllowed, /** @type {string} */ title) =>
      isAllowed ? {} : { disabled: true, title };
    const closing = closed
      ? unless(false, "It is closed.")
      : unless(may.includes("close"), "You may not close this stream.");
    const actions = [
      button(
        "Fork",
        () => askFork(this.#api, entry, (made) => visit(streamRoute(made))),
        unless(allow.includes("create"), "You may not create streams."),
      ),
      button("Download", () => void this.#download(entry)),
      button("Close", () => askClose(this.#api, entry, again), { className: "close", ...closing }),
      button("Delete", () => askDelete(this.#api, entry, () => this.#ending.signal.aborted || location.replace("#/")), {
        className: "danger",
        ...unless(may.includes("delete"), "You may not delete this stream."),
      }),
    ];
    this.#badges.replaceChildren(...badgesOf(entry));
    return el(
      "header",
      { className: "head" },
      el("h1", {}, nameText(name)),
      this.#badges,
      el("div", { className: "actions" }, ...actions),
    );
  }

  /** @param {string} current */
  #links(current) {
    return Object.entries(TABS).map(([tab, label]) => {
      const link = el("a", { href: streamRoute(this.#name, { ...this.#query, tab }) }, label);
      if (tab === current) link.setAttribute("aria-current", "page");
      return link;
    });
  }

  /** @param {Entry} entry */
  #composer({ name, contentType, closed, may }) {
    const kind = kindOf(contentType);
    const mayAppend = !closed && may.includes("append");
    const why = closed ? "This stream is closed." : may.includes("append") ? "" : "You may not append to this stream.";
    const text = el("textarea", {
      rows: 2,
      value: drafts.get(name) ?? "",
      input: () => void (text.value === "" ? drafts.delete(name) : drafts.set(name, text.value)),
      disabled: !mayAppend,
      spellcheck: false,
      placeholder: why || PLACEHOLDERS[kind],
      "aria-label": "What to append",
    });
    const send = el(
      "button",
      { type: "submit", className: "primary", disabled: !mayAppend, title: why || "Control and Enter" },
      "Append",
    );
    const form = el("form", { className: "composer" }, text, send);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const { value } = text;
      // A key is no button: it is not disabled.
      if (send.disabled || value === "") return;
      send.disabled = true;
      try {
        await this.#api.append(name, contentType, kind === "text" ? asLines(value) : value);
        endComplaint();
        if (text.value === value) text.value = "";
        if (drafts.get(name) === value) drafts.delete(name);
      } catch (error) {
        complain(error);
      }
      send.disabled = text.disabled;
      if (document.activeElement === document.body) text.focus();
    });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    return form;
  }

  /** @param {Entry} entry */
  async #download({ name, bytes, contentType }) {
    const tooMuch = () => notice("That is more than this page downloads: use streamdir cat, or curl.", "bad");
    if (bytes !== null && bytes > MAX_DOWNLOAD_BYTES) return tooMuch();
    try {
      /** @type {Uint8Array[]} */
      const parts = [];
      let size = 0;
      for (let offset = "-1", isDone = false; !isDone;) {
        const chunk = await this.#api.read(name, { offset }, this.#ending.signal);
        parts.push(chunk.bytes);
        size += chunk.bytes.length;
        if (size > MAX_DOWNLOAD_BYTES) return tooMuch();
        isDone = chunk.upToDate;
        offset = chunk.next;
        notice(bytes === null ? bytesText(size) : `${bytesText(size)} of ${bytesText(bytes)}`);
      }
      const whole = kindOf(contentType) === "json" ? joinedArrays(parts) : parts;
      // With the writer's type, whoever opens the URL would have a page of this origin, which holds the token.
      const type = "application/octet-stream";
      const url = URL.createObjectURL(new Blob(/** @type {BlobPart[]} */ (whole), { type }));
      el("a", { href: url, download: name.replaceAll("/", "_") }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      complain(error);
    }
  }

  /**
   * Asks what the stream has now, for all news of a while at once: messages say nothing of its size.
   * @param {Entry} entry
   */
  #freshen({ name, bytes }) {
    if (bytes === null || this.#freshening !== 0 || this.#ending.signal.aborted) return;
    this.#freshening = setTimeout(async () => {
      this.#freshening = 0;
      // Where that fails, the next news asks again.
      const now = await this.#api.entry(name, this.#ending.signal).catch(() => null);
      if (now === null || this.#ending.signal.aborted) return;
      this.#badges.replaceChildren(...badgesOf(now));
      this.#list.learn(now);
    }, FRESHEN_MS);
  }

  /**
   * Another stream may have the name by now, which what is here was not meant for.
   * @param {"closed" | "gone"} how
   */
  #disable(how) {
    const [selector, title] = ENDED[how];
    for (const control of this.element.querySelectorAll(selector)) {
      control.toggleAttribute("disabled", true);
      control.setAttribute("title", title);
    }
  }

  #again() {
    this.#pane?.stop();
    void this.start();
  }
}

/** @param {Entry} entry */
function badgesOf({ contentType, bytes, isFork, closed }) {
  const badges = [contentType, bytes === null ? "" : bytesText(bytes), isFork ? "fork" : "", closed ? "closed" : ""];
  return badges.filter((badge) => badge !== "").map((badge) => el("span", {}, badge));
}
