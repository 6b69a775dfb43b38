import assert from "node:assert/strict";
import { test } from "node:test";
import { formatOffset, parseOffset } from "../../src/protocol/offset.js";

const ZERO = "0000000000000000";

test("a token has one meaning, and anything else is none", () => {
  const table: [text: string, parsed: ReturnType<typeof parseOffset>][] = [
    ["-1", { kind: "start" }],
    ["now", { kind: "now" }],
    [`${ZERO}_${ZERO}`, { kind: "at", segmentStart: 0, byteInSegment: 0 }],
    ["0000000000000100_0000000000000042", { kind: "at", segmentStart: 100, byteInSegment: 42 }],
    ["9007199254740991_9007199254740991", { kind: "at", segmentStart: 2 ** 53 - 1, byteInSegment: 2 ** 53 - 1 }],
    ["9007199254740992_0000000000000000", null],
    ["0000000000000000_9007199254740993", null],
    ["9999999999999999_9999999999999999", null],
    ["", null],
    ["0", null],
    ["-2", null],
    ["NOW", null],
    ["now ", null],
    ["0_0", null],
    [ZERO, null],
    [`${ZERO}-${ZERO}`, null],
    [`${ZERO}_${ZERO}0`, null],
    [`${ZERO}_${ZERO}\n`, null],
    [` ${ZERO}_${ZERO}`, null],
    [`${ZERO}_000000000000000`, null],
    [`-000000000000001_${ZERO}`, null],
    [`${ZERO}_000000000000000x`, null],
    [`0x00000000000000_${ZERO}`, null],
    [`000000000000000.5_${ZERO}`, null],
    [`${ZERO},${ZERO}`, null],
    ["../../etc/passwd", null],
  ];
  for (const [text, parsed] of table) assert.deepEqual(parseOffset(text), parsed, JSON.stringify(text));
});

test("a formatted place parses back to itself", () => {
  for (const start of [0, 1, 67_108_864, 2 ** 53 - 1]) {
    for (const byte of [0, 9, 10, 999_999, 2 ** 53 - 1]) {
      const token = formatOffset(start, byte);
      assert.match(token, /^\d{16}_\d{16}$/);
      assert.deepEqual(parseOffset(token), { kind: "at", segmentStart: start, byteInSegment: byte });
    }
  }
});

test("tokens sort as text in the order of their places", () => {
  const places: [number, number][] = [[0, 0], [0, 9], [0, 10], [0, 67_108_863], [67_108_864, 0], [67_108_864, 5], [134_217_728, 1]];
  const tokens = places.map(([start, byte]) => formatOffset(start, byte));
  assert.deepEqual([...tokens].sort(), tokens);
});
