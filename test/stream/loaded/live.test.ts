import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveFeed, type Advance } from "../../../src/stream/loaded/live.js";

function listening(): { feed: LiveFeed; heard: Advance[] } {
  const feed = new LiveFeed();
  const heard: Advance[] = [];
  feed.on("advance", (advance) => heard.push(advance));
  return { feed, heard };
}

test("what became durable together is one advance, with the end of each append", () => {
  const { feed, heard } = listening();
  feed.note(10, 15, false);
  feed.note(15, 40, false);
  feed.note(40, 41, false);
  assert.deepEqual(heard, []);
  feed.emitAdvance();
  assert.deepEqual(heard, [{ from: 10, ends: [15, 40, 41], to: 41, closed: false }]);
});

test("advances follow each other without a gap", () => {
  const { feed, heard } = listening();
  for (const [from, to] of [
    [0, 5],
    [5, 9],
  ] as const) {
    feed.note(from, to, false);
    feed.emitAdvance();
  }
  assert.deepEqual(
    heard.map(({ from, to }) => [from, to]),
    [
      [0, 5],
      [5, 9],
    ],
  );
});

test("a closure without data has no end of an append", () => {
  const { feed, heard } = listening();
  feed.note(7, 7, true);
  feed.emitAdvance();
  feed.note(0, 3, false);
  feed.note(3, 3, true);
  feed.emitAdvance();
  assert.deepEqual(heard, [
    { from: 7, ends: [], to: 7, closed: true },
    { from: 0, ends: [3], to: 3, closed: true },
  ]);
});

test("nothing noted is nothing told", () => {
  const { feed, heard } = listening();
  feed.emitAdvance();
  feed.note(0, 1, false);
  feed.emitAdvance();
  feed.emitAdvance();
  assert.equal(heard.length, 1);
});

test("thousands may listen, and one that leaves while it is told disturbs no other", (t) => {
  const warn = t.mock.method(process, "emitWarning", () => {});
  const feed = new LiveFeed();
  let heard = 0;
  for (let index = 0; index < 5000; index += 1) feed.once("advance", () => (heard += 1));
  feed.note(0, 1, false);
  feed.emitAdvance();
  feed.note(1, 2, false);
  feed.emitAdvance();
  assert.equal(heard, 5000);
  assert.equal(warn.mock.callCount(), 0);
});
