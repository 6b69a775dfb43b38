import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isProblem } from "../../../src/http/encoding/problems.js";
import { parseReadQuery, type ReadQuery } from "../../../src/http/request/query.js";

const TOKEN = "0000000000000000_0000000005000007";
const AT_5 = { kind: "at", partStart: 0, byteInPart: 5, check: 7 } as const;
const NOTHING: ReadQuery = { offset: null, live: null, cursor: null };

const READ: Readonly<Record<string, Partial<ReadQuery>>> = {
  "": {},
  "offset=-1": { offset: { kind: "start" } },
  "offset=now": { offset: { kind: "now" } },
  [`offset=${TOKEN}`]: { offset: AT_5 },
  [`offset=${TOKEN.replace("_", "%5F")}`]: { offset: AT_5 },
  "offset=%2D1": { offset: { kind: "start" } },
  "%6Fffset=-1": { offset: { kind: "start" } },
  "last=1": { offset: { kind: "last", count: 1 } },
  "last=1000000&live=sse": { offset: { kind: "last", count: 1_000_000 }, live: "sse" },
  "since=2026-01-30T00:00:00Z": { offset: { kind: "since", atMs: Date.UTC(2026, 0, 30) } },
  "since=2026-01-31T01%3A00:00%2B01:00": { offset: { kind: "since", atMs: Date.UTC(2026, 0, 31) } },
  "cursor=12&live=long-poll&offset=now": { offset: { kind: "now" }, live: "long-poll", cursor: "12" },
  "live=sse&offset=-1": { offset: { kind: "start" }, live: "sse" },
  "live=sse": { live: "sse" },
  "cursor=": { cursor: "" },
  cursor: { cursor: "" },
  "cursor=a+b%20c": { cursor: "a b c" },
  "&&offset=-1&": { offset: { kind: "start" } },
  "other=1&other=2&offset=-1": { offset: { kind: "start" } },
  "Offset=7": {},
  "%zz=1&offset=-1": { offset: { kind: "start" } },
  "=offset": {},
};

const REFUSED: Readonly<Record<string, string>> = {
  "offset=": "invalid-offset",
  offset: "invalid-offset",
  "offset=+": "invalid-offset",
  "offset=-2": "invalid-offset",
  "offset=0,1": "invalid-offset",
  "offset=0%201": "invalid-offset",
  "offset=NOW": "invalid-offset",
  "offset=%00": "invalid-offset",
  "offset=%": "invalid-query",
  "offset=%ff": "invalid-query",
  "offset=-1&offset=-1": "invalid-query",
  "offset=-1&%6fffset=-1": "invalid-query",
  "live=sse&live=sse&offset=-1": "invalid-query",
  "cursor=1&cursor=1": "invalid-query",
  "live=": "invalid-query",
  ...Object.fromEntries(["", "0", "-1", "01", "1.5", "1e3", "1000001", "x"].map((value) => [`last=${value}`, "invalid-query"])),
  "last=1&last=1": "invalid-query",
  "last=1&offset=-1": "invalid-query",
  "since=2026-01-30T00:00:00Z&offset=-1": "invalid-query",
  "since=2026-01-30T00:00:00Z&last=1": "invalid-query",
  "since=": "invalid-query",
  "since=yesterday": "invalid-query",
  "since=2026-01-30T00:00:00+01:00": "invalid-query",
  "since=2026-01-31T00:00:00.001Z": "invalid-query",
  live: "invalid-query",
  "live=SSE&offset=-1": "invalid-query",
  "live=websocket&offset=-1": "invalid-query",
};

describe("a query is read", () => {
  for (const [query, expected] of Object.entries(READ)) {
    test(JSON.stringify(query), () => assert.deepEqual(parseReadQuery(query, Date.UTC(2026, 0, 31)), { ...NOTHING, ...expected }));
  }
});

describe("a query is refused", () => {
  for (const [query, code] of Object.entries(REFUSED)) {
    test(JSON.stringify(query), () => {
      const result = parseReadQuery(query, Date.UTC(2026, 0, 31));
      assert.ok(isProblem(result));
      assert.equal(result.code, code);
    });
  }
});
