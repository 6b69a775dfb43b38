import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_NAMES } from "../../src/protocol/names/name-range.js";
import { shapeOf } from "../../src/protocol/names/name-shape.js";
import { ShapeNames } from "../../src/storage/shape-names.js";
import { SortedNames } from "../../src/storage/sorted-names.js";
import { TurnCount } from "../helpers/turn-count.js";

test("a pattern that takes long to match keeps nobody waiting, neither at first nor when a name is added", async () => {
  // Some tenths of a millisecond for each name.
  const { shape, key } = shapeOf(`**/${"*/".repeat(200)}b*`);
  const long = (at: number): string => `${"a/".repeat(400)}b${String(at).padStart(3, "0")}`;
  const all = SortedNames.of(Array.from({ length: 300 }, (_, at) => long(at)));
  const count = new TurnCount();
  const names = new ShapeNames(shape, all, () => undefined);
  await names.current;
  const whileFilled = count.turns;
  for (let at = 300; at < 600; at += 1) names.note(long(at), true);
  assert.equal(names.slice(key, ALL_NAMES, Infinity)?.length, 300);
  await names.current;
  count.stop();
  assert.equal(names.slice(key, ALL_NAMES, Infinity)?.length, 600);
  assert.ok(whileFilled >= 5, `${whileFilled} turns`);
  assert.ok(count.turns - whileFilled >= 5, `${count.turns - whileFilled} turns`);
});

test("an index that can't follow what changes is given up", async () => {
  const names = new ShapeNames("*", new SortedNames(), () => undefined);
  for (let at = 0; at < 65_536; at += 1) names.note(String(at), true);
  assert.equal(names.isKept, true);
  names.note("one more", true);
  assert.equal(names.isKept, false);
  assert.equal(names.slice("", ALL_NAMES, 1), null);
  await names.current;
  assert.equal(names.bytes, 0);
});

test("what is gone takes no memory", async () => {
  const names = new ShapeNames("*/\0", SortedNames.of(["a/x", "b/x", "c/y"]), () => undefined);
  await names.current;
  assert.ok(names.bytes > 0);
  for (const name of ["a/x", "b/x", "c/y", "d/z"]) names.note(name, false);
  await names.current;
  assert.equal(names.bytes, 0);
  assert.deepEqual(names.slice("x", ALL_NAMES, 1), []);
});
