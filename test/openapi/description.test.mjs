import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { Description } from "./description.mjs";

const description = new Description();
const ON_ALL = [
  "X-Content-Type-Options",
  "nosniff",
  "Cross-Origin-Resource-Policy",
  "cross-origin",
  "Content-Security-Policy",
  "sandbox; default-src 'none'",
];
const TOKEN = "0000000000000000_0000000000000000";
const PROBLEM = ["Content-Type", "application/problem+json", "Cache-Control", "no-store"];

function append(more) {
  return { method: "POST", target: "/v1/stream/a/b", status: 204, headers: [...ON_ALL, "Stream-Next-Offset", TOKEN], body: "", ...more };
}

function refusal(code, status, more = {}) {
  const body = JSON.stringify({ type: `urn:streamdir:error:${code}`, title: "No", status, code });
  return append({ status, headers: [...ON_ALL, ...PROBLEM], body, ...more });
}

function follow(control) {
  const headers = [...ON_ALL, "Content-Type", "text/event-stream", "Cache-Control", "no-cache, no-transform", "X-Accel-Buffering", "no"];
  return append({
    method: "GET",
    status: 200,
    target: "/v1/stream/a?live=sse&offset=-1",
    headers,
    body: `event: control\ndata:${control}\nid: 1\n\nevent: da`,
  });
}

function listEvents(events) {
  const headers = [...ON_ALL, "Content-Type", "text/event-stream", "Cache-Control", "no-cache, no-transform", "X-Accel-Buffering", "no"];
  return append({
    method: "GET",
    status: 200,
    target: "/v1/stream/__ds/streams?live=sse",
    headers,
    body: `retry: 100\n${events}\n: \n\nev`,
  });
}

function refusalWith(code, status, facts) {
  const refused = refusal(code, status);
  return { ...refused, body: JSON.stringify({ ...JSON.parse(refused.body), ...facts }) };
}

describe("an answer as it is described has no fault", () => {
  const fine = {
    "an append": append({}),
    "a refused append": refusal("empty-body", 400),
    "a refusal that any request can have": refusal("shutting-down", 503, { headers: [...ON_ALL, ...PROBLEM, "Retry-After", "5"] }),
    "a method that there is not": refusal("method-not-allowed", 405, { method: "PATCH", headers: [...ON_ALL, ...PROBLEM, "Allow", "GET"] }),
    "the page at the prefix": append({
      method: "GET",
      target: "/v1/stream/",
      status: 200,
      headers: [...ON_ALL, "Content-Type", "text/plain; charset=utf-8", "Cache-Control", "no-store"],
      body: "a",
    }),
    "what was no HTTP": refusal("bad-request", 400, { method: null, target: "" }),
    "an append of a page that may not": refusal("origin-not-allowed", 403),
    "an append without the right": refusal("not-allowed", 403, {
      headers: [...ON_ALL, ...PROBLEM, "WWW-Authenticate", "Bearer", "Referrer-Policy", "no-referrer", "X-Request-Id", "a"],
    }),
    "a read with its token in the URL": refusal("token-in-query", 400, {
      method: "GET",
      headers: [...ON_ALL, ...PROBLEM, "WWW-Authenticate", "Bearer"],
    }),
    "facts of a name that is none": refusal("invalid-query", 400, { method: "GET", target: "/v1/stream/__ds/ui/facts?stream=" }),
    "events of the list": listEvents(
      [
        'event: control\ndata:{"resumed":false}\nid: a\n',
        `event: created\ndata:{"name":"q","contentType":"text/plain","closed":false,"nextOffset":"${TOKEN}"}\nid: b\n`,
        `event: closed\ndata:{"name":"q","contentType":"text/plain","closed":true,"nextOffset":"${TOKEN}"}\nid: c\n`,
        'event: deleted\ndata:{"name":"q"}\nid: d\n',
      ].join("\n"),
    ),
    "HEAD of the list": append({
      method: "HEAD",
      target: "/v1/stream/__ds/streams",
      status: 200,
      headers: [...ON_ALL, "Content-Type", "application/json", "Cache-Control", "no-store"],
    }),
    "where a body is wrong": refusalWith("invalid-json", 400, { line: 1, column: 7 }),
    "another content type": refusalWith("content-type-mismatch", 409, { expected: "text/plain", received: "a/b" }),
    "the page's address without its slash": append({
      method: "GET",
      target: "/v1/stream/__ds/ui",
      status: 308,
      headers: [...ON_ALL, "Location", "ui/", "Cache-Control", "no-store"],
    }),
    "HEAD, which has no body": refusal("stream-not-found", 404, { method: "HEAD", body: "" }),
    "events, the last of them cut off": follow(`{"streamNextOffset":"${TOKEN}","upToDate":true}`),
  };
  for (const [title, answered] of Object.entries(fine)) test(title, () => assert.deepEqual(description.faultsOf(answered), []));
});

describe("an answer that is not as described has a fault", () => {
  const wrong = {
    "another status": [append({ status: 202 }), /content-type|status/i],
    "no offset": [append({ headers: ON_ALL }), /stream-next-offset is missing/],
    "an offset that is none": [append({ headers: [...ON_ALL, "Stream-Next-Offset", "7"] }), /stream-next-offset must match pattern/],
    "a header of another answer": [append({ headers: [...ON_ALL, "Stream-Next-Offset", TOKEN, "ETag", '"a"'] }), /etag is not described/],
    "a number that is none": [
      append({ headers: [...ON_ALL, "Stream-Next-Offset", TOKEN, "Producer-Seq", "-1"] }),
      /producer-seq must be integer/,
    ],
    "no header of every answer": [append({ headers: ["Stream-Next-Offset", TOKEN] }), /x-content-type-options is missing/],
    "a code of another operation": [refusal("invalid-ttl", 400), /code must be equal to one of/],
    "a code of another status": [refusal("stream-closed", 400), /code must be equal to one of/],
    "a refusal without when to try again": [refusal("storage-full", 507), /retry-after is missing/],
    "a refusal that a cache may keep": [
      refusal("empty-body", 400, { headers: [...ON_ALL, "Content-Type", "application/problem+json"] }),
      /cache-control is missing/,
    ],
    "a body that is no JSON": [refusal("empty-body", 400, { body: "{" }), /the body must be object/],
    "a body of another type": [
      refusal("empty-body", 400, { headers: [...ON_ALL, "Content-Type", "text/html", "Cache-Control", "no-store"] }),
      /text\/html is not described/,
    ],
    "a control event with more": [follow(`{"streamNextOffset":"${TOKEN}","x":1}`), /control event must NOT have additional/],
    "an event of the list without the stream's end": [
      listEvents('event: closed\ndata:{"name":"q","contentType":"text/plain","closed":true}\nid: a\n'),
      /a closed event must have required property 'nextOffset'/,
    ],
    "a line that is none": [refusalWith("invalid-json", 400, { line: 0, column: 1 }), /line must be >= 1/],
    "a header that no stream is asked for with": [refusalWith("config-mismatch", 409, { differs: ["Accept"] }), /differs\/0 must be equal/],
    "success where nothing is": [append({ target: "/elsewhere" }), /.+/],
  };
  for (const [title, [answered, words]] of Object.entries(wrong))
    test(title, () => assert.match(description.faultsOf(answered).join("\n"), words));
});

/** The codes that a schema takes. */
function codesOf({ enum: several, const: one }) {
  return several ?? [one];
}

test("every error of docs/errors.md is described, with its status, and no other", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const statuses = Object.fromEntries(
    [...page.matchAll(/^\| `([a-z-]+)` \| (\d+) \|/gm)].map(([, code, status]) => [code, Number(status)]),
  );
  const responses = Object.values(description.document.components.responses);
  const refusals = responses.flatMap(({ content }) => content?.["application/problem+json"]?.schema.properties ?? []);
  for (const { status, code } of refusals) {
    assert.deepEqual(new Set(codesOf(code).map((name) => statuses[name])), new Set(codesOf(status)), codesOf(code).join());
  }
  assert.deepEqual([...new Set(refusals.flatMap(({ code }) => codesOf(code)))].sort(), Object.keys(statuses).sort());
});

test("an operation with a path of its own is not taken for a stream's", () => {
  const names = [
    "/v1/stream/__ds/streams",
    "/v1/stream/__ds/ui/facts",
    "/v1/stream/__ds/ui/",
    "/v1/stream/__ds/ui/a.js",
    "/v1/stream/",
    "/v1/stream/a",
  ];
  assert.deepEqual(
    names.map((path) => description.operationOf("GET", path).operationId),
    ["listStreams", "getPageFacts", "getPage", "getPage", description.document.paths["/"].get.operationId, "read"],
  );
});

test("every member that docs/errors.md lists is described", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const [, table = ""] = /^\| code \| members \|\n([^]*?)\n\n/m.exec(page) ?? [];
  const rows = table.split("\n").slice(1);
  const { properties } = description.document.components.schemas.Problem;
  const listed = rows.flatMap((row) => {
    const [code = "", ...members] = [...row.matchAll(/`([A-Za-z-]+)`/g)].map(([, word]) => word);
    for (const member of members) assert.ok(properties[member]?.description.includes(`\`${code}\``), `${code}: ${member}`);
    return members;
  });
  const common = ["type", "title", "status", "code", "detail"];
  assert.deepEqual([...common, ...listed].sort(), Object.keys(properties).sort());
});

test("HEAD of the list has an operation of its own", () => {
  assert.equal(description.operationOf("HEAD", "/v1/stream/__ds/streams").operationId, "askList");
});
