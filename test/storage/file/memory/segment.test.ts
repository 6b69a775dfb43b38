import assert from "node:assert/strict";
import { test } from "node:test";
import { endOf, partsOf, type Segment } from "../../../../src/storage/file/memory/segment.js";

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
