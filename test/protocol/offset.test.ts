import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { crc32 } from "node:zlib";
import { checkOf, formatOffset, isCheckOf, isStart, MAX_PART_BYTES, parseOffset, START_TOKEN } from "../../src/protocol/offset.js";

const ZERO = "0000000000000000";

test("an offset token has one meaning, and any other text has none", () => {
  const table: [text: string, parsed: ReturnType<typeof parseOffset>][] = [
    ["-1", { kind: "start" }],
    ["now", { kind: "now" }],
    [`${ZERO}_${ZERO}`, { kind: "at", partStart: 0, byteInPart: 0, check: 0 }],
    ["0000000000000100_0000000042123456", { kind: "at", partStart: 100, byteInPart: 42, check: 123_456 }],
    ["0000000000000000_0000000000999999", { kind: "at", partStart: 0, byteInPart: 0, check: 999_999 }],
    ["9007199254740991_9007199254740991", { kind: "at", partStart: 2 ** 53 - 1, byteInPart: 9_007_199_254, check: 740_991 }],
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

test("the offset token of a place parses back to it", () => {
  for (const start of [0, 1, 67_108_864, 2 ** 53 - 1]) {
    for (const byte of [1, 9, 10, 999_999, MAX_PART_BYTES]) {
      for (const check of [0, 1, 500_000, 999_998]) {
        const token = formatOffset(start, byte, check);
        assert.match(token, /^\d{16}_\d{16}$/);
        assert.deepEqual(parseOffset(token), { kind: "at", partStart: start, byteInPart: byte, check });
      }
    }
  }
});

test("offset tokens sort as text in the order of their places", () => {
  const places: [number, number][] = [
    [0, 0],
    [0, 9],
    [0, 10],
    [0, 67_108_863],
    [67_108_864, 0],
    [67_108_864, 5],
    [134_217_728, 1],
  ];
  const tokens = places.map(([start, byte]) => formatOffset(start, byte, 999_998));
  assert.deepEqual([...tokens].sort(), tokens);
});

test("the start of a stream has one offset token whoever wrote what follows, and one more is the start, too", () => {
  assert.equal(START_TOKEN, `${ZERO}_${ZERO}`);
  for (const check of [0, 7, 999_998]) assert.equal(formatOffset(0, 0, check), START_TOKEN);
  const table: [token: string, expected: boolean][] = [
    [START_TOKEN, true],
    [`${ZERO}_0000000000000001`, true],
    [`${ZERO}_0000000000000002`, false],
    [`${ZERO}_0000000001000000`, false],
    [`0000000000000001_${ZERO}`, false],
  ];
  for (const [token, expected] of table) {
    const parsed = parseOffset(token);
    assert.ok(parsed?.kind === "at");
    assert.equal(isStart(parsed), expected, token);
  }
});

describe("the check of an incarnation in offset tokens", () => {
  test("is made from its id", () => {
    for (const id of ["0123456789abcdef01234567", "ffffffffffffffffffffffff", ""]) {
      assert.equal(checkOf(id), crc32(Buffer.from(id)) % 999_999);
    }
  });

  test("leaves room for one more within its digits, and that one more is read as it", () => {
    for (const check of [0, 41, 999_998]) {
      const parsed = parseOffset(formatOffset(100, 5, check).replace(/\d+$/, (place) => String(Number(place) + 1).padStart(16, "0")));
      assert.ok(parsed?.kind === "at");
      assert.deepEqual([parsed.partStart, parsed.byteInPart], [100, 5]);
      assert.ok(isCheckOf(parsed.check, check));
    }
    for (const other of [39, 42 + 1, 0]) assert.equal(isCheckOf(other, 41), false, String(other));
  });
});
