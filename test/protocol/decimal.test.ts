import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDecimal } from "../../src/protocol/decimal.js";

test("a plain decimal up to 2^53-1 is its number, everything else is null", () => {
  const table: [text: string, value: number | null][] = [
    ["0", 0],
    ["7", 7],
    ["10", 10],
    ["3600", 3600],
    ["1000000000000000", 1e15],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
    ["9007199254740992", null],
    ["9007199254740993", null],
    ["9999999999999999", null],
    ["10000000000000000", null],
    ["", null],
    ["00", null],
    ["00060", null],
    ["+60", null],
    ["-1", null],
    ["-0", null],
    ["60.5", null],
    ["1e3", null],
    ["0x10", null],
    ["1_000", null],
    [" 1", null],
    ["1 ", null],
    ["abc", null],
    ["1/", null],
    ["1:", null],
    ["٣", null],
  ];
  for (const [text, value] of table) {
    assert.equal(parseDecimal(text), value, text);
  }
});
