import assert from "node:assert/strict";
import { test } from "node:test";
import { LineBytes } from "../../../src/ops/lines/line-bytes.js";
import { Random } from "../../helpers/random.js";

/** What `write` adds to an empty block. */
function written(write: (line: LineBytes) => void): string {
  const line = new LineBytes(1024);
  write(line);
  return line.bytes.toString("latin1", 0, line.length);
}

test("an integer is written in its digits", () => {
  const random = new Random(1);
  const integers = [0, 9, 10, 99, 100, 999_999, 1_000_000, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER];
  for (let count = 0; count < 100; count += 1) integers.push(random.integer(0, 2 ** (1 + (count % 31))));
  for (const integer of integers)
    assert.equal(
      written((line) => line.addInteger(integer)),
      String(integer),
    );
});

test("tenths are written as the number that they are", () => {
  for (const [tenths, text] of [
    [0, "0"],
    [3, "0.3"],
    [10, "1"],
    [12_345, "1234.5"],
  ] as const)
    assert.equal(
      written((line) => line.addTenths(tenths)),
      text,
    );
});

test("three digits are written also where the first are zero", () => {
  for (const [number, text] of [
    [0, "000"],
    [7, "007"],
    [40, "040"],
    [999, "999"],
  ] as const)
    assert.equal(
      written((line) => line.addThreeDigits(number)),
      text,
    );
});

test("what is written can be written over", () =>
  assert.equal(
    written((line) => {
      line.addText("one two three");
      line.overwrite(4, "six");
    }),
    "one six three",
  ));

test("short and long texts, bytes and what was written before follow each other", () => {
  const long = "long ".repeat(20);
  const text = written((line) => {
    line.addText("short");
    line.addText(long);
    line.addText("");
    line.add(Buffer.from("bytes"));
    line.repeat(0, 5);
    line.addByte(33);
  });
  assert.equal(text, `short${long}bytesshort!`);
});
