// What a stream is, and how a program would read it.

import { button, copy, el, svg } from "./dom.js";
import { bytesText } from "./figures.js";
import { kindOf } from "./messages.js";
import { nameText, streamRoute } from "./route.js";

/** @typedef {import("./api.js").Entry} Entry */

/** Longest chain of sources that is looked up. */
const MAX_SOURCES = 16;
const MAX_DRAWN_FORKS = 12;
/** Streams among which forks are looked for, beside those of the tree. */
const MAX_SEARCHED = 1000;

/**
 * @param {import("./api.js").Api} api
 * @param {Entry} entry
 * @param {readonly Entry[]} known Those of the tree, of which some may be forks of this one.
 */
export async function aboutView(api, entry, known) {
  const facts = el("dl", { className: "facts" });
  for (const [label, value] of factsOf(entry)) facts.append(el("dt", {}, label), el("dd", {}, value));
  const sources = await sourcesOf(api, entry);
  const { streams } = entry.bytes === null ? { streams: [] } : await api.list({ limit: String(MAX_SEARCHED) });
  const found = new Map([...streams, ...known].map((stream) => [stream.name, stream]));
  const forks = [...found.values()].filter(({ forkedFrom }) => forkedFrom === entry.name);
  return el(
    "section",
    { className: "about" },
    facts,
    sources.length + forks.length === 0 ? null : family(entry, sources, forks),
  );
}

/**
 * @param {Entry} entry
 * @returns {[string, string][]}
 */
function factsOf(entry) {
  const time = (/** @type {string | null} */ at) => (at === null ? "—" : new Date(at).toLocaleString());
  return [
    ["Name", nameText(entry.name)],
    ["Content type", entry.contentType],
    ["Size", entry.bytes === null ? "—" : `${bytesText(entry.bytes)} (${entry.bytes.toLocaleString()} bytes)`],
    ["State", entry.closed ? "closed" : "open"],
    ["Tail", entry.nextOffset],
    ["Earliest byte", entry.earliestOffset],
    ["Created", time(entry.createdAt)],
    ["Last append", time(entry.lastAppendAt)],
    ["Lives for", entry.ttlSeconds === null ? "—" : `${entry.ttlSeconds} s unused`],
    ["Expires", entry.expiresAt === null ? "never" : time(entry.expiresAt)],
    ["Readers now", String(entry.liveReaders ?? "—")],
    ["Producers", String(entry.producers ?? "—")],
    ["Forked from", entry.isFork ? nameText(entry.forkedFrom ?? "a stream that you may not read") : "—"],
    ["You may", entry.may.join(", ") || "—"],
  ];
}

/**
 * The streams that a fork comes from, the nearest first.
 * @param {import("./api.js").Api} api
 * @param {Entry} entry
 */
async function sourcesOf(api, entry) {
  const names = [];
  let at = /** @type {Entry | null} */ (entry);
  while (at?.forkedFrom != null && names.length < MAX_SOURCES) {
    names.push(at.forkedFrom);
    at = await api.entry(at.forkedFrom);
  }
  return names;
}

/**
 * @param {Entry} entry
 * @param {string[]} sources
 * @param {Entry[]} forks
 */
function family(entry, sources, forks) {
  const chain = [...sources].reverse().concat(entry.name);
  const below = forks.slice(0, MAX_DRAWN_FORKS).map(({ name }) => name);
  const [width, step] = [300, 44];
  const rows = [
    ...chain.map((name, depth) => ({ name, depth })),
    ...below.map((name) => ({ name, depth: chain.length })),
  ];
  const height = rows.length * step;
  const indent = (/** @type {number} */ depth) => Math.min(depth, 6) * 22;
  const drawing = svg("svg", {
    viewBox: `0 0 ${width + indent(chain.length)} ${height}`,
    role: "img",
    "aria-label": "Forks",
    class: "family",
  });
  for (const [at, { name, depth }] of rows.entries()) {
    const x = indent(depth) + 1;
    const parent = depth < chain.length ? at - 1 : chain.length - 1;
    if (at > 0)
      drawing.append(
        svg("path", { d: `M${indent(rows[parent]?.depth ?? 0) + 11} ${parent * step + 33}V${at * step + 17}H${x}` }),
      );
    const text = nameText(name);
    const label = text.length > 34 ? `${text.slice(0, 33)}…` : text;
    const box = svg(
      "g",
      { class: name === entry.name ? "here" : "" },
      svg("rect", { x, y: at * step + 1, width: width - 10, height: 32, rx: 6 }),
      svg("text", { x: x + 10, y: at * step + 22 }, label),
    );
    drawing.append(svg("a", { href: streamRoute(name) }, box));
  }
  const left = forks.length - below.length;
  return el("div", {}, el("h3", {}, "Forks"), drawing, left > 0 ? el("p", {}, `and ${left} more`) : null);
}

/**
 * The requests of a view, as a program or a person would send them.
 * @param {URL} url
 * @param {Record<string, string>} query
 * @param {boolean} hasToken
 * @param {string} contentType
 * @returns {[string, string][]}
 */
export function requestsOf(url, query, hasToken, contentType) {
  const place =
    query["at"] !== undefined
      ? `offset=${quotable(query["at"])}`
      : query["since"] !== undefined
        ? `since=${quotable(query["since"])}`
        : `last=${quotable(query["last"] ?? "100")}`;
  const header = hasToken ? ` \\\n  -H "Authorization: Bearer $STREAMDIR_TOKEN"` : "";
  const quoted = `'${url.href.replaceAll("'", "%27")}`;
  const text = JSON.stringify(url.href);
  const fetchHeaders = hasToken ? `, {\n  headers: { Authorization: \`Bearer \${token}\` },\n}` : "";
  const isJson = kindOf(contentType) === "json";
  return [
    ["Read with curl", `curl -i${header} \\\n  ${quoted}?${place}'`],
    ["Follow with curl", `curl -N${header} \\\n  ${quoted}?${place}&live=sse'`],
    [
      "Append with curl",
      `curl -X POST${header} \\\n  -H 'Content-Type: ${contentType.replaceAll("'", "")}' --data '${isJson ? '{"hello":"world"}' : "hello"}' \\\n  ${quoted}'`,
    ],
    [
      "Follow in a browser",
      `${hasToken ? "// An EventSource sends no header: ask for a ticket, see docs/auth.md.\n" : ""}const source = new EventSource(${text} + "?${place}&live=sse"${hasToken ? ' + "&ticket=" + ticket' : ""});
source.addEventListener("data", (event) => console.log(${isJson ? "JSON.parse(event.data)" : "event.data"}));
source.addEventListener("control", (event) => {
  if (JSON.parse(event.data).streamClosed) source.close();
});`,
    ],
    [
      "Read in a program",
      `const answer = await fetch(${text} + "?${place}"${fetchHeaders});
console.log(await answer.${isJson ? "json" : "text"}(), answer.headers.get("Stream-Next-Offset"));`,
    ],
    [
      "With the official client",
      `import { DurableStream } from "@durable-streams/client";

const stream = new DurableStream({ url: ${text}${hasToken ? ", headers: { Authorization: `Bearer ${token}` }" : ""} });
const reader = await stream.stream({ offset: ${JSON.stringify(query["at"] ?? "-1")}, live: "sse" });
reader.${isJson ? "subscribeJson(async (batch) => console.log(batch.items));" : "subscribeText(async (chunk) => console.log(chunk.text));"}`,
    ],
  ];
}

/**
 * A value of a query that ends no quotes: a link that somebody else made may have anything there.
 * @param {string} value
 */
function quotable(value) {
  return encodeURIComponent(value).replaceAll("'", "%27");
}

/** @param {[string, string][]} requests */
export function codeView(requests) {
  const parts = requests.map(([title, code]) =>
    el(
      "div",
      { className: "code" },
      el(
        "h3",
        {},
        title,
        button("Copy", () => void copy(code, title), { "aria-label": `Copy ${title}` }),
      ),
      el("pre", {}, code),
    ),
  );
  return el("section", { className: "codes" }, ...parts);
}
