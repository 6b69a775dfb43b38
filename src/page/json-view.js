// Shows JSON, folded and coloured; what is folded is not made before it is opened.

import { button, el } from "./dom.js";

/** Members that are shown at a time. */
const STEP = 100;
const PREVIEW_CHARS = 160;

/**
 * @param {string} raw A JSON text.
 * @returns {Node}
 */
export function jsonView(raw) {
  try {
    return valueOf(JSON.parse(raw));
  } catch {
    // Not JSON after all: a text.
    return document.createTextNode(raw);
  }
}

/**
 * @param {unknown} value
 * @returns {Node}
 */
function valueOf(value) {
  if (value === null || typeof value !== "object")
    return el("span", { className: value === null ? "null" : typeof value }, JSON.stringify(value));
  const members = Object.entries(value);
  const brackets = Array.isArray(value) ? "[]" : "{}";
  if (members.length === 0) return document.createTextNode(brackets);
  const folded = el("details", { className: "json" }, el("summary", {}, previewOf(value)));
  let isMade = false;
  const make = () => {
    if (isMade || !folded.open) return;
    isMade = true;
    addMembers(folded, members, Array.isArray(value), 0);
  };
  folded.addEventListener("toggle", make);
  return folded;
}

/**
 * @param {HTMLElement} parent
 * @param {[string, unknown][]} members
 * @param {boolean} isArray
 * @param {number} from
 */
function addMembers(parent, members, isArray, from) {
  for (const [key, value] of members.slice(from, from + STEP))
    parent.append(
      el(
        "div",
        { className: "member" },
        el("span", { className: "key" }, isArray ? key : JSON.stringify(key)),
        ": ",
        valueOf(value),
      ),
    );
  const left = members.length - from - STEP;
  if (left <= 0) return;
  const more = button(`${left} more`, () => {
    more.remove();
    addMembers(parent, members, isArray, from + STEP);
  });
  parent.append(more);
}

/** @param {object} value */
function previewOf(value) {
  const preview = el("span", { className: "preview" });
  let chars = 0;
  const entries = Object.entries(value);
  preview.append(Array.isArray(value) ? "[" : "{");
  for (const [index, [key, member]] of entries.entries()) {
    if (chars > PREVIEW_CHARS) {
      preview.append(" …");
      break;
    }
    if (index > 0) preview.append(", ");
    if (!Array.isArray(value)) preview.append(el("span", { className: "key" }, key), ": ");
    const isPlain = member === null || typeof member !== "object";
    const text = isPlain ? JSON.stringify(member) : Array.isArray(member) ? "[…]" : "{…}";
    const short = text.length > 120 ? `${text.slice(0, 120)}…` : text;
    preview.append(isPlain ? el("span", { className: member === null ? "null" : typeof member }, short) : short);
    chars += key.length + short.length;
  }
  preview.append(Array.isArray(value) ? "]" : "}");
  return preview;
}
