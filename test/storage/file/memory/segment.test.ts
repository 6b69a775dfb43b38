import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { endOf, isExcess, partsOf, type Segment } from "../../../../src/storage/file/memory/segment.js";
import type { RetentionLimits } from "../../../../src/storage/storage.js";

function segmentAt(start: number, length: number): Segment {
  return { start, length, crc: 0, firstAtMs: start, newestAtMs: start + 1, index: null, unchecked: null };
}

test("a segment ends behind its last byte", () => {
  assert.equal(endOf(segmentAt(100, 50)), 150);
  assert.equal(endOf(segmentAt(100, 0)), 100);
});

test("parts are what lies between two positions, cut to them", () => {
  const segments = [segmentAt(0, 100), segmentAt(100, 50), segmentAt(150, 10)];
  const table: [from: number, to: number, parts: [segmentStart: number, end: number][]][] = [
    [
      0,
      160,
      [
        [0, 100],
        [100, 150],
        [150, 160],
      ],
    ],
    [0, 0, []],
    [
      99,
      101,
      [
        [0, 100],
        [100, 101],
      ],
    ],
    [100, 150, [[100, 150]]],
    [150, 999, [[150, 160]]],
    [160, 999, []],
    [120, 110, []],
  ];
  for (const [from, to, parts] of table) {
    const found = [...partsOf(segments, from, to)].map(({ segmentStart, end, newestAtMs }) => {
      assert.equal(newestAtMs, segmentStart + 1);
      return [segmentStart, end];
    });
    assert.deepEqual(found, parts, `${from}..${to}`);
  }
});

const KEEP = { maxBytes: Infinity, maxAgeMs: Infinity };

describe("what is more than the limits keep", () => {
  const oldest = { end: 1000, newestAtMs: 5000 };
  const table: [what: string, limits: Partial<RetentionLimits>, tail: number, nowMs: number, isIt: boolean][] = [
    ["nothing, without limits", {}, 1e9, 1e15, false],
    ["nothing, while what would be left is less than the limit", { maxBytes: 500 }, 1499, 0, false],
    ["a part without which there is still as much as the limit", { maxBytes: 500 }, 1500, 0, true],
    ["nothing, while its newest byte is not older than the limit", { maxAgeMs: 100 }, 2000, 5100, false],
    ["a part of which each byte is older", { maxAgeMs: 100 }, 2000, 5101, true],
    ["either of them", { maxAgeMs: 100, maxBytes: 1e9 }, 2000, 5101, true],
  ];
  for (const [what, limits, tail, nowMs, isIt] of table) {
    test(`is ${what}`, () => assert.equal(isExcess(oldest, tail, { ...KEEP, ...limits }, nowMs), isIt));
  }

  test("is nothing of a stream without bytes", () => assert.equal(isExcess(null, 5, { maxBytes: 0, maxAgeMs: 0 }, 1e9), false));
});
