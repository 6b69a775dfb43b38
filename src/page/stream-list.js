// The streams as a tree: found by typing, page by page, kept up to date.

import { ApiError } from "./api.js";
import { button, byId, complain, el, inPlace } from "./dom.js";
import { bytesText, numberText } from "./figures.js";
import { pause, whileShown } from "./live.js";
import { nameText, streamRoute } from "./route.js";
import { listQueryOf, treeOf } from "./tree.js";

/** @typedef {import("./api.js").Entry} Entry */
/** @typedef {import("./tree.js").Node<Entry>} TreeNode */

const PAGE_STREAMS = 200;
/** As many as one answer of the list has. */
const MAX_PAGE_STREAMS = 1000;
/** What the tree has at most; what is beyond it is found by typing. */
const MAX_STREAMS = 5000;
const TYPING_MS = 150;
/** Redrawn at most so often, whatever comes and goes. */
const REDRAW_MS = 250;

export class StreamList {
  #api;
  #onTrouble;
  #tree = byId("tree");
  #listed = byId("listed");
  #find = /** @type {HTMLInputElement} */ (byId("find"));
  /** @type {Entry[]} */
  #entries = [];
  /** How many there may be, by what somebody has asked for: streams that are made meanwhile push out the last ones. */
  #room = MAX_PAGE_STREAMS;
  #said = el("span", {});
  #more = button("More streams", () => this.#loadAside(this.#ending.signal, false));
  /** @type {string | null} */
  #next = null;
  /** @type {(() => void)[] | null} What comes while a page is read, which may be older. */
  #late = null;
  /** One page at a time: one that was asked for before another and comes after it would undo it. */
  #lastLoad = Promise.resolve();
  #selected = "";
  /** @type {Entry | null} What was last heard of a stream from elsewhere: its creation may be told later. */
  #learnt = null;
  #ending = new AbortController();
  #redraw = 0;
  #typing = 0;
  /** Nothing that is pressed is drawn anew: it would not be clicked. */
  #isPressed = false;
  /** @type {Set<string>} Folders that were closed by hand. */
  #closed = new Set();

  /**
   * @param {import("./api.js").Api} api
   * @param {(error: unknown) => void} onTrouble
   */
  constructor(api, onTrouble) {
    this.#api = api;
    this.#onTrouble = onTrouble;
    this.#find.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.reload(), TYPING_MS);
    });
    byId("side").addEventListener("keydown", (event) => this.#move(event));
    this.#tree.addEventListener("pointerdown", ({ button }) => (this.#isPressed = button === 0));
    for (const end of ["pointerup", "pointercancel", "contextmenu", "blur"])
      addEventListener(end, () => (this.#isPressed = false));
  }

  /** @returns {readonly Entry[]} */
  get entries() {
    return this.#entries;
  }

  /** @param {string} name */
  set selected(name) {
    this.#selected = name;
    for (const link of this.#links()) mark(link, link.dataset["name"] === name);
  }

  /**
   * Takes what a view has heard of a stream: events of the list say nothing of its size.
   * @param {Entry} entry
   */
  learn(entry) {
    this.#learnt = entry;
    const at = this.#entries.findIndex(({ name }) => name === entry.name);
    if (at < 0) return;
    this.#entries[at] = entry;
    this.#drawSoon(this.#ending.signal);
  }

  /** Begins again, with what is typed now. */
  reload() {
    this.#ending.abort();
    this.#ending = new AbortController();
    this.#entries = [];
    this.#room = MAX_PAGE_STREAMS;
    this.#next = null;
    void this.#run(this.#ending.signal);
  }

  /**
   * Follows the list, and lists whenever something may have been missed.
   * @param {AbortSignal} signal
   */
  async #run(signal) {
    let delayMs = 500;
    const query = listQueryOf(this.#find.value);
    while (!signal.aborted) {
      const shown = await whileShown(signal);
      try {
        await this.#load(signal, true);
        await this.#api.follow(this.#api.listFeed(query), shown, ({ event, data }) => {
          delayMs = 500;
          if (event === "control") this.#loadAside(signal, true);
          else {
            const take = () => this.#take(event, JSON.parse(data), signal);
            if (this.#late === null) take();
            else this.#late.push(take);
          }
        });
      } catch (error) {
        if (signal.aborted) return;
        if (shown.aborted) continue;
        this.#onTrouble(error);
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          this.#listed.textContent = error.message;
          this.#tree.replaceChildren();
          return;
        }
        this.#listed.textContent = "The server can't be reached; trying again.";
      }
      await pause(delayMs, signal);
      delayMs = Math.min(delayMs * 2, 10_000);
    }
  }

  /**
   * @param {AbortSignal} signal
   * @param {boolean} fromStart
   */
  #loadAside(signal, fromStart) {
    this.#load(signal, fromStart).catch((error) => signal.aborted || complain(error));
  }

  /**
   * @param {AbortSignal} signal
   * @param {boolean} fromStart
   * @returns {Promise<void>}
   */
  #load(signal, fromStart) {
    const load = this.#lastLoad.then(() => this.#loadNow(signal, fromStart));
    this.#lastLoad = load.catch(() => undefined);
    return load;
  }

  /**
   * @param {AbortSignal} signal
   * @param {boolean} fromStart
   */
  async #loadNow(signal, fromStart) {
    if (signal.aborted || (!fromStart && this.#next === null)) return;
    const after = fromStart ? "" : (this.#next ?? "");
    const wanted = fromStart ? Math.max(PAGE_STREAMS, this.#entries.length) : PAGE_STREAMS;
    /** @type {(() => void)[]} */
    const late = (this.#late = []);
    try {
      const { streams, next } = await this.#pages(after, wanted, signal);
      if (signal.aborted) return;
      this.#entries = fromStart ? streams : [...this.#entries, ...streams];
      this.#next = next;
      this.#room = Math.max(this.#room, this.#entries.length);
    } finally {
      this.#late = null;
    }
    for (const take of late) take();
    this.#onTrouble(null);
    this.#draw();
  }

  /**
   * @param {string} after
   * @param {number} wanted
   * @param {AbortSignal} signal
   */
  async #pages(after, wanted, signal) {
    /** @type {Entry[]} */
    const streams = [];
    for (let next = after; ;) {
      const limit = Math.min(MAX_PAGE_STREAMS, wanted - streams.length);
      const query = { ...listQueryOf(this.#find.value), limit: String(limit), ...(next === "" ? {} : { after: next }) };
      const page = await this.#api.list(query, signal);
      streams.push(...page.streams);
      // The server may end a page early; nobody waits for another one who has not seen more.
      if (page.next === null || streams.length >= wanted || wanted <= MAX_PAGE_STREAMS)
        return { streams, next: page.next };
      next = page.next;
    }
  }

  /**
   * @param {string} event
   * @param {Entry} data
   * @param {AbortSignal} signal
   */
  #take(event, data, signal) {
    const at = this.#entries.findIndex(({ name }) => name >= data.name);
    const known = this.#entries[at]?.name === data.name;
    if (event === "deleted" && this.#learnt?.name === data.name) this.#learnt = null;
    if (event === "deleted" && known) this.#entries.splice(at, 1);
    else if (event === "closed" && known) this.#entries[at] = { .../** @type {Entry} */ (this.#entries[at]), ...data };
    else if (event === "created") {
      // What is beyond the pages that were read comes with them.
      if (at < 0 && this.#next !== null) return;
      const entry = this.#learnt?.name === data.name ? this.#learnt : { ...NEW, ...data };
      if (known) this.#entries[at] = entry;
      else this.#entries.splice(at < 0 ? this.#entries.length : at, 0, entry);
      if (this.#entries.length > this.#room) {
        this.#entries.length = this.#room;
        this.#next = this.#entries.at(-1)?.name ?? null;
      }
    }
    this.#drawSoon(signal);
  }

  /** @param {AbortSignal} signal */
  #drawSoon(signal) {
    if (this.#redraw === 0) this.#redraw = setTimeout(() => signal.aborted || this.#draw(), REDRAW_MS);
  }

  #draw() {
    clearTimeout(this.#redraw);
    this.#redraw = 0;
    if (this.#isPressed) return this.#drawSoon(this.#ending.signal);
    const { activeElement: active } = document;
    const focused = active instanceof HTMLElement && this.#tree.contains(active) ? { ...active.dataset } : null;
    // What is under a finger stays there.
    const edge = this.#tree.getBoundingClientRect().top;
    const held = { ...this.#rows().find((row) => row.getBoundingClientRect().bottom > edge)?.dataset };
    inPlace(
      this.#tree,
      () => this.#rowOf(held),
      () => this.#tree.replaceChildren(this.#level(treeOf(this.#entries))),
    );
    if (focused !== null) this.#rowOf(focused)?.focus({ preventScroll: true });
    const count = this.#entries.length;
    const isFull = this.#next !== null && count >= MAX_STREAMS;
    const said =
      count === 0
        ? this.#find.value === ""
          ? "No stream yet. Make the first one with New."
          : "No stream is called so."
        : `${numberText(count)} stream${count === 1 ? "" : "s"}${this.#next === null ? "" : ", and more"}${isFull ? ": find them by their names" : ""}`;
    if (this.#said.parentElement !== this.#listed) this.#listed.replaceChildren(this.#said, this.#more);
    // A screen reader says what changes there.
    if (this.#said.textContent !== said) this.#said.textContent = said;
    this.#more.hidden = this.#next === null || isFull;
  }

  /** The links and folders, from the top. */
  #rows() {
    return [.../** @type {NodeListOf<HTMLElement>} */ (this.#tree.querySelectorAll("a, summary"))];
  }

  /** @param {DOMStringMap} of Of one that was there before. */
  #rowOf({ name, path }) {
    return this.#rows().find(({ dataset }) => dataset["name"] === name && dataset["path"] === path);
  }

  /**
   * @param {TreeNode[]} nodes
   * @returns {HTMLElement}
   */
  #level(nodes) {
    return el(
      "ul",
      {},
      ...nodes.map((node) =>
        el(
          "li",
          {},
          node.item === null ? null : this.#link(node, node.item),
          node.children.length === 0 ? null : this.#folder(node),
        ),
      ),
    );
  }

  /** @param {TreeNode} node */
  #folder(node) {
    const folder = el(
      "details",
      { open: !this.#closed.has(node.path) },
      el("summary", { "data-path": node.path }, `${nameText(node.label)}/`),
      this.#level(node.children),
    );
    folder.addEventListener("toggle", () =>
      folder.open ? this.#closed.delete(node.path) : this.#closed.add(node.path),
    );
    return folder;
  }

  /**
   * @param {TreeNode} node
   * @param {Entry} entry
   */
  #link({ label }, { name, bytes, closed, isFork }) {
    const marks = [isFork ? "fork" : "", closed ? "closed" : ""].filter((one) => one !== "").join(", ");
    const link = el(
      "a",
      { href: streamRoute(name), title: nameText(name), "data-name": name },
      el("span", { className: "name" }, nameText(label)),
      el("span", { className: "hint" }, marks !== "" ? marks : bytes === null ? "" : bytesText(bytes)),
    );
    mark(link, name === this.#selected);
    return link;
  }

  #links() {
    return [...this.#tree.querySelectorAll("a")];
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = this.#links().filter((link) => link.offsetParent !== null);
    const at = links.findIndex((link) => link === document.activeElement);
    const next = event.key === "ArrowDown" ? at + 1 : at - 1;
    event.preventDefault();
    if (next < 0) this.#find.focus();
    else links[Math.min(next, links.length - 1)]?.focus();
  }
}

/** What is not known yet of a stream that was just made. */
const NEW = { bytes: null, isFork: false, may: [], liveReaders: 0, producers: 0 };

/**
 * @param {HTMLElement} link
 * @param {boolean} isSelected
 */
function mark(link, isSelected) {
  if (isSelected) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}
