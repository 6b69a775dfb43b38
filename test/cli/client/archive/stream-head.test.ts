import assert from "node:assert/strict";
import test from "node:test";
import { formatHead, importerOf, parseHead, type StreamHead } from "../../../../src/cli/client/archive/stream-head.js";

const HEAD: StreamHead = {
  format: 1,
  name: "chat/1",
  contentType: "application/json",
  ttlSeconds: 60,
  expiresAt: null,
  closed: true,
  fork: { from: "chat/0", at: 3, sha256: "abc" },
  bytes: 5,
  pieces: [
    [2, 1],
    [3, 2],
  ],
  sha256: "ab",
};

test("a head is read as it was written", () => assert.deepEqual(parseHead(formatHead(HEAD)), HEAD));

test("a head that was changed does not have its checksum", () => {
  for (const [from, to] of [
    ["chat/1", "chat/2"],
    ["60", "61"],
    ["true", "false"],
    ['"at":3', '"at":2'],
  ] as const) {
    const parsed = parseHead(formatHead(HEAD).replace(from, to));
    assert.ok("fault" in parsed);
    assert.equal(parsed.fault, "is damaged: it does not have its checksum");
  }
});

for (const [change, fault] of [
  [{ format: 2 }, /has the format 2, which this version does not know/],
  [{ name: "../a" }, /has a name that is none/],
  [{ name: 1 }, /has no name/],
  [{ closed: "yes" }, /lacks contentType, closed or sha256/],
  [{ ttlSeconds: -1 }, /ttlSeconds/],
  [{ expiresAt: 1 }, /expiresAt/],
  [{ fork: { from: "/a", at: 1, sha256: "abc" } }, /fork/],
  [{ fork: { from: "a", at: 1 } }, /fork/],
  [{ fork: undefined }, /fork/],
  [{ bytes: 6 }, /pieces/],
  [{ pieces: [[5]] }, /pieces/],
  [
    {
      pieces: [
        [0, 1],
        [5, 1],
      ],
    },
    /pieces/,
  ],
  [{ pieces: [[2 ** 40, 1]], bytes: 2 ** 40 }, /pieces/],
] as const)
  test(`one with ${JSON.stringify(change)} is refused`, () => {
    const parsed = parseHead(JSON.stringify({ ...HEAD, ...change }));
    assert.ok("fault" in parsed);
    assert.match(parsed.fault, fault);
  });

test("what is no object is refused", () => {
  for (const text of ["", "1", "null"]) assert.ok("fault" in parseHead(text));
});

test("the importer is named by what it stores", () => {
  assert.equal(importerOf(HEAD), importerOf({ ...HEAD, ttlSeconds: null, closed: false }));
  assert.notEqual(importerOf(HEAD), importerOf({ ...HEAD, name: "chat/2" }));
  assert.match(importerOf(HEAD), /^import-[0-9a-f]{40}$/);
});
