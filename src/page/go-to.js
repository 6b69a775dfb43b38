// Where to go in a stream: to the last so many messages, to an offset, or to a time.

import { el } from "./dom.js";

/**
 * The form: what is typed is checked as far as the browser can.
 * @param {() => Record<string, string>} current
 * @param {(query: Record<string, string>) => void} go
 */
export function goTo(current, go) {
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
