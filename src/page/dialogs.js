// What changes streams, each behind a dialog.

import { ApiError } from "./api.js";
import { byId, button, el, notice, whileDisabled } from "./dom.js";
import { asLines, kindOf } from "./messages.js";
import { nameText } from "./route.js";

/**
 * Asks in the page's dialog; `submit` may refuse by throwing, and the dialog stays.
 * @param {string} title
 * @param {string} label Of the button that does it.
 * @param {Node[]} fields
 * @param {() => Promise<void>} submit
 * @param {{ isDangerous?: boolean }} [options]
 */
export function ask(title, label, fields, submit, { isDangerous = false } = {}) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("dialog"));
  const fault = el("p", { className: "fault", role: "alert" });
  const does = el("button", { type: "submit", className: isDangerous ? "danger" : "primary" }, label);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await whileDisabled(does, submit).then(
      // Meanwhile it may have been left for another one.
      () => dialog.contains(does) && dialog.close(),
      (error) => (fault.textContent = error instanceof Error ? error.message : String(error)),
    );
  };
  const cancel = button("Cancel", () => dialog.close(), isDangerous ? { autofocus: true } : {});
  dialog.replaceChildren(
    el(
      "form",
      { submit: send },
      el("h2", { id: "asked" }, title),
      ...fields,
      fault,
      el("div", { className: "buttons" }, cancel, does),
    ),
  );
  dialog.showModal();
}

/**
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} [hint]
 */
export function field(label, input, hint = "") {
  return el("label", { className: "field" }, el("span", {}, label), input, hint === "" ? null : el("small", {}, hint));
}

/** What was typed of a stream that was not made: a dialog is closed by mistake, too. @type {ReturnType<typeof newFields> | null} */
let unsent = null;

function newFields() {
  const type = el("input", { required: true, value: "application/json", autocomplete: "off" });
  type.setAttribute("list", "types");
  return {
    name: el("input", { required: true, placeholder: "chat/1", autocomplete: "off", spellcheck: false }),
    type,
    ttl: el("input", { type: "number", min: "1", placeholder: "for good" }),
    first: el("textarea", { rows: 3, spellcheck: false, placeholder: '{"hello":"world"}' }),
  };
}

/**
 * @param {import("./api.js").Api} api
 * @param {(name: string) => void} onDone
 * @param {string} beginning
 */
export function askCreate(api, onDone, beginning) {
  const typed = (unsent ??= newFields());
  const { name, type, ttl, first } = typed;
  name.value = beginning || name.value;
  const types = el(
    "datalist",
    { id: "types" },
    ...["application/json", "text/plain", "application/octet-stream"].map((value) => el("option", { value })),
  );
  const fields = [
    field("Name", name, "A slash makes a folder."),
    field("Content type", type),
    types,
    field("Lives for (seconds unused)", ttl),
    field("First message", first, "May stay empty. Text gets a line feed."),
  ];
  ask("New stream", "Create", fields, async () => {
    const headers = { "Content-Type": type.value, ...(ttl.value === "" ? {} : { "Stream-TTL": ttl.value }) };
    const { value } = first;
    const body = kindOf(type.value) === "text" ? asLines(value) : value;
    const asked = name.value;
    // Meanwhile it may be left, and the next stream asked for.
    unsent = null;
    const { status } = await api.create(asked, headers, value === "" ? undefined : body).catch((error) => {
      unsent ??= typed;
      throw error;
    });
    const made = nameText(asked);
    notice(status === 201 ? `${made} created.` : `${made} was there already: nothing was appended.`);
    onDone(asked);
  });
}

/**
 * @param {import("./api.js").Api} api
 * @param {import("./api.js").Entry} entry
 * @param {(name: string) => void} onDone
 */
export function askFork(api, entry, onDone) {
  const name = el("input", { required: true, value: `${entry.name}-fork`, autocomplete: "off", spellcheck: false });
  const at = el("input", { placeholder: "the tail, as it is now", autocomplete: "off", spellcheck: false });
  const fields = [
    el(
      "p",
      {},
      "A stream that begins as a copy of ",
      el("b", {}, nameText(entry.name)),
      " up to an offset, and takes no room for it.",
    ),
    field("Name of the fork", name),
    field("Offset", at),
  ];
  ask("Fork", "Fork", fields, async () => {
    const source = { "Stream-Forked-From": await api.pathOf(entry.name) };
    const { status } = await api.create(name.value, {
      "Content-Type": entry.contentType,
      ...source,
      ...(at.value === "" ? {} : { "Stream-Fork-Offset": at.value }),
    });
    const made = nameText(name.value);
    notice(status === 201 ? `${made} forked.` : `${made} was there already, as such a fork: it is as it was.`);
    onDone(name.value);
  });
}

/**
 * @param {import("./api.js").Api} api
 * @param {import("./api.js").Entry} entry
 * @param {() => void} onDone
 */
export function askClose(api, entry, onDone) {
  const words = ["Nothing can be appended to ", " any more. Readers are told that this is its end."];
  const close = () => api.close(entry.name);
  askDangerous(api, "Close for good?", "Close", entry, words, close, "closed", onDone);
}

/**
 * @param {import("./api.js").Api} api
 * @param {import("./api.js").Entry} entry
 * @param {() => void} onDone
 */
export function askDelete(api, entry, onDone) {
  const words = ["All of ", " goes, and does not come back. Its forks keep what they have of it."];
  const remove = () => api.remove(entry.name);
  askDangerous(api, "Delete?", "Delete", entry, words, remove, "deleted", onDone);
}

/**
 * @param {import("./api.js").Api} api
 * @param {string} title
 * @param {string} label
 * @param {import("./api.js").Entry} entry
 * @param {string[]} words Before and after the name.
 * @param {() => Promise<unknown>} work
 * @param {string} done
 * @param {() => void} onDone
 */
function askDangerous(api, title, label, { name, createdAt }, [before = "", after = ""], work, done, onDone) {
  const submit = async () => {
    // The list alone says when a stream was made.
    const now = createdAt === null ? null : await api.entry(name);
    if (now !== null && now.createdAt !== createdAt)
      throw new ApiError(409, "", "It was deleted, and made anew: that is another stream. Look again.");
    await work();
    notice(`${nameText(name)} ${done}.`);
    onDone();
  };
  ask(title, label, [el("p", { id: "what" }, before, el("b", {}, nameText(name)), after)], submit, {
    isDangerous: true,
  });
}

/** Opens the dialog of the token, as the button at the top of the page does. */
export function tokenButton() {
  return button("Give a token", () => byId("token").click(), { className: "primary" });
}

/**
 * What may help after an error: another token, or another look, which comes by itself once there is a network again.
 * @param {unknown} error
 * @param {() => void} look
 */
export function againButton(error, look) {
  const status = error instanceof ApiError ? error.status : -1;
  if (status === 401) return tokenButton();
  const again = button("Look again", look);
  if (status === 0) addEventListener("online", () => again.isConnected && look(), { once: true });
  return again;
}

/**
 * @param {import("./api.js").Api} api
 * @param {() => void} onDone
 */
export function askToken(api, onDone) {
  const token = el("input", { type: "password", value: api.token, autocomplete: "off", spellcheck: false });
  const text = el(
    "p",
    {},
    "A token or a JWT. This tab keeps it until it is closed, and sends it to this server alone.",
  );
  ask("Token", "Use it", [text, field("Token", token, "Empty: none.")], async () => {
    api.token = token.value.trim();
    onDone();
  });
}
