import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Caller } from "../../../src/auth/rights/caller.js";
import { OPERATIONS, type Operation } from "../../../src/auth/rights/operation.js";
import { neededRight } from "../../../src/http/access/needed-right.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";

const RIGHT = { grant: 0, rate: null };
const PREFIX = "/v1/stream/";

/** May do `rights`, each on the streams named. */
function callerWith(rights: Readonly<Partial<Record<Operation, readonly string[]>>>): Caller {
  return {
    id: "test",
    endsAtMs: Infinity,
    mayAnywhere: () => true,
    mayEverywhere: () => false,
    rangesOf: () => [],
    rightTo: (operation, name) => (rights[operation]?.includes(name) === true ? RIGHT : null),
  };
}

/** A request and all that it needs. */
const ROWS: readonly [method: string, headers: readonly string[], needs: readonly (readonly [Operation, string])[]][] = [
  ["GET", [], [["read", "a"]]],
  ["HEAD", [], [["read", "a"]]],
  ["GET", ["Stream-Closed", "true"], [["read", "a"]]],
  ["DELETE", [], [["delete", "a"]]],
  ["PUT", [], [["create", "a"]]],
  ["PUT", ["Content-Length", "3"], [["create", "a"]]],
  [
    "PUT",
    ["Stream-Closed", "true"],
    [
      ["create", "a"],
      ["close", "a"],
    ],
  ],
  [
    "PUT",
    ["Stream-Closed", "TRUE"],
    [
      ["create", "a"],
      ["close", "a"],
    ],
  ],
  ["PUT", ["Stream-Closed", "no"], [["create", "a"]]],
  [
    "PUT",
    ["Stream-Forked-From", "/v1/stream/b"],
    [
      ["create", "a"],
      ["read", "b"],
    ],
  ],
  [
    "PUT",
    ["Stream-Forked-From", "/v1/stream/%62"],
    [
      ["create", "a"],
      ["read", "b"],
    ],
  ],
  [
    "PUT",
    ["Stream-Forked-From", "/v1/stream/b", "Stream-Closed", "true"],
    [
      ["create", "a"],
      ["close", "a"],
      ["read", "b"],
    ],
  ],
  ["PUT", ["Stream-Forked-From", "/elsewhere/b"], [["create", "a"]]],
  ["PUT", ["Stream-Forked-From", "/v1/stream/%zz"], [["create", "a"]]],
  ["POST", ["Content-Length", "3"], [["append", "a"]]],
  ["POST", ["Transfer-Encoding", "chunked"], [["append", "a"]]],
  ["POST", [], [["append", "a"]]],
  ["POST", ["Content-Length", "0"], [["append", "a"]]],
  ["POST", ["Stream-Closed", "true"], [["close", "a"]]],
  ["POST", ["Stream-Closed", "true", "Content-Length", "0"], [["close", "a"]]],
  [
    "POST",
    ["Stream-Closed", "true", "Content-Length", "3"],
    [
      ["append", "a"],
      ["close", "a"],
    ],
  ],
  [
    "POST",
    ["Stream-Closed", "true", "Transfer-Encoding", "chunked"],
    [
      ["append", "a"],
      ["close", "a"],
    ],
  ],
];

describe("a request needs exactly its rights", () => {
  for (const [method, raw, needs] of ROWS) {
    const asked = { method, headers: readHeaders(raw), name: "a", prefix: PREFIX };
    const names = needs.map(([operation, name]) => `${operation} on ${name}`).join(", ");
    const all = (without: number | null): Caller => {
      const rights: Partial<Record<Operation, string[]>> = {};
      for (const [at, [operation, name]] of needs.entries()) if (at !== without) (rights[operation] ??= []).push(name);
      return callerWith(rights);
    };
    test(`${method} with ${raw.join(": ") || "nothing"}: ${names}`, () => assert.equal(neededRight(all(null), asked), RIGHT));
    for (const [at, [operation]] of needs.entries())
      test(`${method} with ${raw.join(": ") || "nothing"} is refused without ${operation}`, () =>
        assert.equal(neededRight(all(at), asked), operation));
    test(`${method} with ${raw.join(": ") || "nothing"} is refused with all rights on another stream`, () => {
      const elsewhere = callerWith(Object.fromEntries(OPERATIONS.map((operation) => [operation, ["A", "aa", "a/a"]])));
      assert.equal(typeof neededRight(elsewhere, asked), "string");
    });
  }
});
