// Starts the page, and shows what its fragment says.

import { Api, ApiError, orNull } from "./api.js";
import { askCreate, askToken, tokenButton } from "./dialogs.js";
import { byId, button, el, endComplaint, keepFocus } from "./dom.js";
import { nameText, parseRoute, streamRoute, visit } from "./route.js";
import { ServerView } from "./server-view.js";
import { StreamList } from "./stream-list.js";
import { StreamView, TABS } from "./stream-view.js";

/** @typedef {{ element: HTMLElement, start(): Promise<void>, stop(): void, togglePause?(): void }} View */

const api = new Api();
const list = new StreamList(api, showTrouble);
/** @type {View | null} */
let view = null;
/** @type {Pick<import("./api.js").Facts, "allow" | "metrics" | "caller">} */
const NOBODY = { allow: [], metrics: null, caller: null };
/** Whether nobody has said yet what the token may do. */
let isUnknown = false;
/** Whether the next stream to be shown was just made: then something is appended to it. */
let isMade = false;
/** What the server says where it wants a token, or another one; else empty. */
let tokenWanted = "";
const KEYS_KEY = "streamdir-keys";
/** Whether single letters do something: whoever speaks to the computer turns that off. */
let hasKeys = orNull(() => localStorage.getItem(KEYS_KEY)) !== "off";

/** @param {Event} [event] What else is shown now; none at the start. */
function show(event) {
  const { place, name, query } = parseRoute(location.hash);
  const isWithin = (/** @type {string} */ selector) => document.activeElement?.closest(selector) instanceof HTMLElement;
  const focused = isMade ? "composer" : isWithin(".tabs") ? "tab" : isWithin(".goto") ? "place" : "";
  view?.stop();
  view = null;
  // It was asked of what was shown before.
  /** @type {HTMLDialogElement} */ (byId("dialog")).close();
  if (place === "server") view = new ServerView(api);
  if (place === "stream") view = new StreamView(api, name, query, list, focused);
  isMade = false;
  list.selected = name;
  document.body.dataset["place"] = place;
  const tab = TABS[/** @type {keyof TABS} */ (query["tab"] ?? "")] ?? TABS[""];
  const title = place === "stream" ? `${nameText(name)} · ${tab} · ` : place === "server" ? "Server · " : "";
  document.title = `${title}streamdir`;
  byId("main").replaceChildren(view?.element ?? home());
  endComplaint();
  if (event !== undefined) keepFocus();
  void view?.start();
  void greyOut();
}

/** Greys out what the token may do nowhere. */
async function greyOut() {
  // What is wrong is said where the streams are listed.
  const facts = await api.server().catch(() => NOBODY);
  const { allow, metrics, caller } = facts;
  isUnknown = facts === NOBODY;
  const may = metrics === null ? allow.filter((one) => one !== "admin") : allow;
  byId("token").title = caller === null ? "" : `You are ${caller}.`;
  for (const one of document.querySelectorAll("[data-needs]")) {
    const isGrey = !may.includes(one.getAttribute("data-needs") ?? "");
    if (one instanceof HTMLButtonElement) one.disabled = isGrey;
    else one.setAttribute("aria-disabled", String(isGrey));
  }
}

function home() {
  const keys = [
    ["/", "find"],
    ["n", "new"],
    ["p", "pause"],
    ["g", "go to a place"],
  ].flatMap(([key = "", what]) => [el("kbd", {}, key), ` ${what}  `]);
  const parts =
    tokenWanted !== ""
      ? [el("p", {}, tokenWanted), tokenButton()]
      : [
          el("p", {}, "Named, append-only byte streams in a directory. Choose one, or make one and append to it."),
          button("New stream", create, { className: "primary", "data-needs": "create" }),
          el("p", { className: "keys" }, ...keys, keysSwitch()),
        ];
  return el("section", { className: "home" }, el("h1", {}, "streamdir"), ...parts);
}

function keysSwitch() {
  const label = () => `Turn these ${hasKeys ? "off" : "on"}`;
  const turn = button(label(), () => {
    hasKeys = !hasKeys;
    orNull(() => localStorage.setItem(KEYS_KEY, hasKeys ? "on" : "off"));
    turn.textContent = label();
  });
  return turn;
}

function create() {
  if (byId("create").hasAttribute("disabled")) return;
  const typed = /** @type {HTMLInputElement} */ (byId("find")).value;
  const made = (/** @type {string} */ name) => {
    isMade = true;
    visit(streamRoute(name));
  };
  askCreate(api, made, typed.includes("*") ? "" : typed);
}

function token() {
  askToken(api, () => {
    showTrouble(null);
    list.reload();
    show();
  });
}

/** @param {unknown} error */
function showTrouble(error) {
  const status = error instanceof ApiError ? error.status : 0;
  const wanted = error instanceof ApiError && status === 401 ? error.message : "";
  const trouble = error === null ? "" : wanted !== "" ? "token" : status === 403 ? "right" : "server";
  byId("token").textContent = api.token === "" || trouble === "token" ? "Token" : "Token ✓";
  byId("token").className = trouble === "token" || trouble === "right" ? "primary" : "";
  document.body.dataset["trouble"] = trouble;
  const isOtherHome = view === null && wanted !== tokenWanted;
  tokenWanted = wanted;
  if (isOtherHome) byId("main").replaceChildren(home());
  if (isOtherHome || (error === null && isUnknown)) void greyOut();
}

/**
 * A link to what is shown already shows it anew.
 * @param {MouseEvent} event
 */
function click(event) {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (
    link === null ||
    link.hash === "" ||
    link.hash !== location.hash ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey
  )
    return;
  event.preventDefault();
  visit(link.hash);
}

/** @param {KeyboardEvent} event */
function key(event) {
  const { target } = event;
  const isTyping = target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;
  if (event.key === "Escape" && target instanceof HTMLElement && isTyping) target.blur();
  if (!hasKeys || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  /** @type {Record<string, () => void>} */
  const keys = {
    "/": () => byId("find").focus(),
    n: create,
    p: () => view?.togglePause?.(),
    g: () => document.getElementById("place")?.focus(),
  };
  const action = keys[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

byId("create").addEventListener("click", create);
byId("skip").addEventListener("click", () => byId("main").focus());
byId("notice").addEventListener("click", endComplaint);
byId("token").addEventListener("click", token);
addEventListener("hashchange", show);
addEventListener("keydown", key);
addEventListener("click", click);
showTrouble(null);
list.reload();
show();
