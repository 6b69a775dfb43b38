import assert from "node:assert/strict";
import { test } from "node:test";
import { LineQueue } from "../../src/ops/line-queue.js";
import { ManualClock } from "../helpers/manual-clock.js";

/** An output that takes a text when the test says so. */
function heldOutput(): { texts: string[]; write(bytes: Buffer, written: () => void): void; take(): void } {
  const texts: string[] = [];
  let written: (() => void) | undefined;
  return {
    texts,
    write: (bytes, done) => {
      texts.push(bytes.toString());
      written = done;
    },
    take: () => written?.(),
  };
}

test("lines go out together, a tenth of a second after the first", () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const queue = new LineQueue(output, clock);
  queue.push("a");
  queue.push("b");
  clock.advance(99);
  assert.deepEqual(output.texts, []);
  clock.advance(1);
  assert.deepEqual(output.texts, ["a\nb\n"]);
});

test("a full batch goes out at once, and the next when that is taken", () => {
  const output = heldOutput();
  const queue = new LineQueue(output, new ManualClock());
  const line = "x".repeat(32 * 1024);
  queue.push(line);
  queue.push("next");
  assert.deepEqual(output.texts, [`${line}\n`]);
  output.take();
  assert.deepEqual(output.texts.slice(1), ["next\n"]);
});

test("where nobody takes them, lines are dropped and counted, and what is kept is bounded", () => {
  const output = heldOutput();
  const queue = new LineQueue(output, new ManualClock());
  const line = "x".repeat(1024 * 1024 - 1);
  for (let at = 0; at < 10; at += 1) queue.push(line);
  assert.equal(queue.dropped, 6);
  output.take();
  queue.push("again");
  assert.equal(queue.dropped, 6);
});

test("the end writes what is left, and waits a second for it at the most", async () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const queue = new LineQueue(output, clock);
  queue.push("last");
  const closed = queue.close();
  assert.deepEqual(output.texts, ["last\n"]);
  output.take();
  await closed;
  queue.push("stuck");
  const stuck = queue.close();
  clock.advance(1000);
  await stuck;
});
