// Shows JSON, folded and coloured; what is folded is not made before it is opened.

import { button, el } from "./dom.js";
import { membersOf } from "./messages.js";

/** Members that are shown at a time. */
const STEP = 100;
const PREVIEW_CHARS = 160;

/**
 * Parsed values lose digits, doubled keys and the order of keys like 1, so what is shown is cut out of the text.
 * @param {string} raw A JSON text.
 * @returns {Node}
 */
export function jsonView(raw) {
  try {
    JSON.parse(raw);
  } catch {
    // Not JSON after all: a text.
    return document.createTextNode(raw);
  }
  return valueOf(raw.trim());
}

/**
 * @param {string} raw
 * @returns {Node}
 */
function valueOf(raw) {
  if (!isNested(raw)) return el("span", { className: kindOf(raw) }, textOf(raw));
  if (membersOf(raw, 1).length === 0) return document.createTextNode(raw.startsWith("[") ? "[]" : "{}");
  const folded = el("details", { className: "json" }, el("summary", {}, previewOf(raw)));
  let isMade = false;
  const make = () => {
    if (isMade || !folded.open) return;
    isMade = true;
    addMembers(folded, membersOf(raw), raw.startsWith("["), 0);
  };
  folded.addEventListener("toggle", make);
  return folded;
}

/** @param {string} raw */
function isNested(raw) {
  return raw.startsWith("{") || raw.startsWith("[");
}

/** @param {string} raw */
function kindOf(raw) {
  if (raw.startsWith('"')) return "string";
  return raw === "null" ? raw : raw === "true" || raw === "false" ? "boolean" : "number";
}

/**
 * A string without escapes that it does not need; all else as it was written.
 * @param {string} raw
 */
function textOf(raw) {
  return raw.startsWith('"') ? JSON.stringify(JSON.parse(raw)) : raw;
}

/**
 * @param {HTMLElement} parent
 * @param {[string, string][]} members
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

/** @param {string} raw */
function previewOf(raw) {
  const isArray = raw.startsWith("[");
  const preview = el("span", { className: "preview" });
  let chars = 0;
  preview.append(isArray ? "[" : "{");
  for (const [index, [key, member]] of membersOf(raw, PREVIEW_CHARS + 2).entries()) {
    if (chars > PREVIEW_CHARS) {
      preview.append(" …");
      break;
    }
    if (index > 0) preview.append(", ");
    if (!isArray) preview.append(el("span", { className: "key" }, key), ": ");
    const isPlain = !isNested(member);
    const text = isPlain ? textOf(member) : member.startsWith("[") ? "[…]" : "{…}";
    const short = text.length > 120 ? `${text.slice(0, 120)}…` : text;
    preview.append(isPlain ? el("span", { className: kindOf(member) }, short) : short);
    chars += key.length + short.length;
  }
  preview.append(isArray ? "]" : "}");
  return preview;
}
