import assert from "node:assert/strict";
import { isUtf8 } from "node:buffer";
import { test } from "node:test";
import { completeTextLength, Utf8Check } from "../../src/protocol/utf8.js";
import { seededRandom, seedOfRun } from "./seeded-random.js";

test("only a UTF-8 sequence that can still be completed is held back", () => {
  const table: [bytes: number[], heldBack: number][] = [
    [[], 0],
    [[0x61], 0],
    [[0xc3, 0xa9], 0],
    [[0x61, 0xc3], 1],
    [[0xe2], 1],
    [[0xe2, 0x82], 2],
    [[0xe2, 0x82, 0xac], 0],
    [[0x61, 0xf0, 0x9f, 0x8c], 3],
    [[0xf0, 0x9f], 2],
    [[0xf0], 1],
    [[0xf0, 0x9f, 0x8c, 0x8a], 0],
    [[0x80], 0],
    [[0x80, 0x80, 0x80, 0x80], 0],
    [[0xc3, 0xa9, 0x80], 0],
    [[0xc0], 0],
    [[0xc1], 0],
    [[0xf5], 0],
    [[0xff], 0],
    [[0xe0, 0x80], 0],
    [[0xe0, 0xa0], 2],
    [[0xed, 0xa0], 0],
    [[0xed, 0x9f], 2],
    [[0xf0, 0x80], 0],
    [[0xf4, 0x90, 0x80], 0],
    [[0xf4, 0x8f, 0x80], 3],
  ];
  for (const [bytes, heldBack] of table) {
    assert.equal(completeTextLength(Buffer.from(bytes)), bytes.length - heldBack, JSON.stringify(bytes));
  }
});

test("UTF-8 text cut anywhere and held back accordingly decodes as if it were whole", () => {
  const bytes = Buffer.from("aé€🌊\u0800\ud7ff\ue000\u{10000}\u{10ffff}z");
  for (let cut = 0; cut <= bytes.length; cut++) {
    const end = completeTextLength(bytes.subarray(0, cut));
    assert.ok(cut - end <= 3);
    assert.equal(bytes.toString("utf8", 0, end) + bytes.toString("utf8", end), bytes.toString(), `cut at ${cut}`);
  }
});

function isValidInParts(parts: readonly Buffer[]): boolean {
  const check = new Utf8Check();
  return parts.every((part) => check.take(part)) && check.isWhole;
}

test("text in parts is UTF-8 exactly if it is as a whole, however it is cut", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const characters = ["a", "é", "€", "🌊", "\u0800", "\ud7ff", "\ue000", "\u{10000}", "\u{10ffff}"];
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.from(Array.from({ length: below(6) }, () => characters[below(characters.length)]).join(""));
    // Half of them are damaged.
    if (bytes.length > 0 && random() < 0.5) bytes[below(bytes.length)] = 0x80 + below(0x80);
    const parts: Buffer[] = [];
    for (let from = 0; from < bytes.length;) parts.push(bytes.subarray(from, (from += 1 + below(4))));
    assert.equal(isValidInParts(parts), isUtf8(bytes), `seed ${seed}, round ${round}: ${bytes.toString("hex")}`);
  }
});

test("UTF-8 text that ends inside a character is not whole, and what can't become one is not UTF-8", () => {
  const check = new Utf8Check();
  assert.ok(check.take(Buffer.from([0x61, 0xe2, 0x82])));
  assert.ok(!check.isWhole);
  assert.ok(!check.take(Buffer.from([0x61])));
});
