import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  decodeChange,
  encodeChange,
  encodeSnapshot,
  ForeignMessageError,
  payloadOf,
  snapshotOf,
  type Change,
} from "../../../../src/storage/nats/log/change.js";

const PLAIN: Change = {
  deletedAtMs: null,
  id: "0a1b",
  name: "jöbs/1",
  publication: "front.1",
  from: 10,
  to: 15,
  records: [
    { length: 2, messages: 1, closes: false, producer: null, seq: null, atMs: 1000 },
    { length: 3, messages: 4, closes: false, producer: { id: "p", epoch: 1, seq: 7 }, seq: null, atMs: 1003 },
  ],
  config: { contentType: "text/plain", createdAtMs: 900, ttlSeconds: null, expiresAtMs: null, forkedFrom: null },
  earliest: 0,
  earliestAtMs: 950,
  newestAtMs: 1003,
  messages: 9,
  closedAtMs: null,
  isClosed: false,
  closedBy: null,
  lastSeq: null,
  producers: { kind: "here", marks: [["p", 1, 7, 1003]] },
};

const ORIGIN = { name: "s", id: "9", point: 4, earliest: { position: 0, segmentStart: 0 }, offset: null, subOffset: 0 };

describe("a change", () => {
  for (const [what, more] of [
    ["of two appends", {}],
    ["without any", { records: [], to: 10 }],
    [
      "with a Stream-Seq and no producer",
      { records: [{ length: 5, messages: 1, closes: false, producer: null, seq: "ä7", atMs: 5 }], lastSeq: "ä7" },
    ],
    [
      "that closes",
      {
        records: [{ length: 5, messages: 1, closes: true, producer: { id: "q", epoch: 0, seq: 0 }, seq: null, atMs: 5 }],
        isClosed: true,
        closedAtMs: 5,
        closedBy: { id: "q", epoch: 0, seq: 0 },
      },
    ],
    ["that deletes", { records: [], to: 10, deletedAtMs: 77 }],
    ["of a fork with a lifetime", { config: { ...PLAIN.config, ttlSeconds: 9, expiresAtMs: 8, forkedFrom: ORIGIN } }],
    ["with a snapshot", { producers: { kind: "snapshot", bytes: 12 } }],
    ["since a snapshot", { producers: { kind: "since", sequence: 40, behind: 3 } }],
  ] as const satisfies readonly (readonly [string, Partial<Change>])[])
    test(`${what} is read as it was written`, () => {
      const change: Change = { ...PLAIN, ...more };
      const head = encodeChange(change);
      assert.ok(!head.includes("\n"));
      const body = Buffer.from("hello");
      assert.deepEqual(decodeChange({ sequence: 3, previous: 2, head, body }), { change, sequence: 3, previous: 2, body });
    });

  test("payload and snapshot lie behind each other", () => {
    const marks = [["p", 1, 2, 3]] as const;
    const body = Buffer.concat([Buffer.from("hello"), encodeSnapshot(marks)]);
    const placed = decodeChange({ sequence: 1, previous: 0, head: encodeChange(PLAIN), body });
    assert.equal(payloadOf(placed).toString(), "hello");
    assert.deepEqual(snapshotOf(placed), marks);
  });

  test("of another version, or nobody's, is refused with its sequence", () => {
    for (const head of ["", "{", "null", "3", '{"v":2}'])
      assert.throws(() => decodeChange({ sequence: 41, previous: 0, head, body: Buffer.alloc(0) }), ForeignMessageError);
  });
});
