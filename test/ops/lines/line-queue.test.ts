import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { LineQueue, MAX_LINE_BYTES, type LineOutput } from "../../../src/ops/lines/line-queue.js";
import { keptLog } from "../../helpers/engine.js";
import { ManualClock } from "../../helpers/manual-clock.js";

/** An output that takes a text when the test says so. */
function heldOutput(): { texts: string[]; write: LineOutput["write"]; take(fault?: Error): void } {
  const texts: string[] = [];
  let written: ((fault?: Error) => void) | undefined;
  return {
    texts,
    write: (bytes, done) => {
      texts.push(bytes.toString());
      written = done;
    },
    take: (fault) => written?.(fault),
  };
}

/** Adds a line, unless too much waits. */
function push(queue: LineQueue, text: string): void {
  const line = queue.begin();
  if (line === null) return;
  line.addText(text);
  queue.end();
}

test("lines go out together, a tenth of a second after the first", () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const queue = new LineQueue(output, clock, keptLog().log);
  push(queue, "a");
  push(queue, "b");
  clock.advance(99);
  assert.deepEqual(output.texts, []);
  clock.advance(1);
  assert.deepEqual(output.texts, ["a\nb\n"]);
});

test("a full batch goes out at once, and the next when that is taken", () => {
  const output = heldOutput();
  const queue = new LineQueue(output, new ManualClock(), keptLog().log);
  const line = "x".repeat(16 * 1024);
  push(queue, line);
  push(queue, line);
  push(queue, "next");
  assert.deepEqual(output.texts, [`${line}\n${line}\n`]);
  output.take();
  assert.deepEqual(output.texts.slice(1), ["next\n"]);
});

test("where nobody takes them, lines are dropped and counted, and what is kept is bounded", () => {
  const output = heldOutput();
  const queue = new LineQueue(output, new ManualClock(), keptLog().log);
  const line = "x".repeat(MAX_LINE_BYTES - 1);
  const most = Math.floor((4 * 1024 * 1024) / MAX_LINE_BYTES);
  for (let count = 0; count < 2 * most; count += 1) push(queue, line);
  const kept = 2 * most - queue.dropped;
  assert.ok(kept > most - 2 && kept <= most, `${kept} lines`);
  const { dropped } = queue;
  output.take();
  push(queue, "again");
  assert.equal(queue.dropped, dropped);
  for (let count = 0; count < most; count += 1) output.take();
  assert.ok(output.texts.join("") === `${`${line}\n`.repeat(kept)}again\n`);
});

test("lines that come slowly while the output stands still take no more memory than they need", () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const queue = new LineQueue(output, clock, keptLog().log);
  for (let count = 0; count < 1000; count += 1) {
    push(queue, "slow");
    clock.advance(100);
  }
  output.take();
  assert.deepEqual(output.texts, ["slow\n", "slow\n".repeat(999)]);
});

test("the end writes what is left, and waits a second for it at the most", async () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const queue = new LineQueue(output, clock, keptLog().log);
  push(queue, "last");
  const closed = queue.close();
  assert.deepEqual(output.texts, ["last\n"]);
  output.take();
  await closed;
  push(queue, "stuck");
  const stuck = queue.close();
  clock.advance(1000);
  await stuck;
});

test("an output is left as it was found", async () => {
  const emitter = new EventEmitter();
  const output = Object.assign(emitter, { write: (_bytes: Buffer, written: () => void) => written() });
  const queue = new LineQueue(output, new ManualClock(), keptLog().log);
  push(queue, "a");
  assert.equal(emitter.listenerCount("error"), 1);
  await queue.close();
  assert.equal(emitter.listenerCount("error"), 0);
});

test("lines that can't be written are counted, with those that waited, and told of once until one is written", () => {
  const clock = new ManualClock();
  const output = heldOutput();
  const { log, lines } = keptLog();
  const queue = new LineQueue(output, clock, log);
  push(queue, "a");
  push(queue, "b");
  clock.advance(100);
  for (const text of ["c", "d", "e"]) push(queue, text);
  clock.advance(100);
  output.take(new Error("EPIPE"));
  assert.equal(queue.dropped, 2);
  output.take(new Error("EPIPE"));
  assert.equal(queue.dropped, 5);
  const told = ["warn", "the access log can't be written: its lines are dropped", { fault: "EPIPE" }];
  const said = (): unknown[] => lines.map(({ level, message, fields }) => [level, message, fields]);
  assert.deepEqual(said(), [told]);
  for (const fault of [undefined, new Error("EPIPE")]) {
    push(queue, "f");
    clock.advance(100);
    output.take(fault);
  }
  assert.equal(queue.dropped, 6);
  assert.deepEqual(said(), [told, told]);
});

test("an output that is too slow is told of once, and again only after all was taken", () => {
  const output = heldOutput();
  const { log, lines } = keptLog();
  const queue = new LineQueue(output, new ManualClock(), log);
  const line = "x".repeat(MAX_LINE_BYTES - 1);
  for (let round = 1; round <= 2; round += 1) {
    for (let count = 0; count < 200; count += 1) push(queue, line);
    output.take();
    for (let count = 0; count < 200; count += 1) push(queue, line);
    assert.deepEqual(
      lines.map(({ message }) => message),
      Array<string>(round).fill("the access log is not taken fast enough: lines are dropped"),
    );
    for (let count = 0; count < 200; count += 1) output.take();
  }
});

for (const [how, breaks] of [
  ["throws", () => assert.fail("write is broken")],
  ["rejects", () => Promise.reject(new Error("write is broken"))],
] as const)
  test(`an output that ${how} costs the lines that it was given, and no more`, async () => {
    const { log, lines } = keptLog();
    const taken: string[] = [];
    let isBroken = true;
    const queue = new LineQueue(
      {
        write: (bytes, written) => {
          if (isBroken) return breaks();
          taken.push(bytes.toString());
          written();
          return written();
        },
      },
      new ManualClock(),
      log,
    );
    push(queue, "lost");
    await queue.close();
    assert.deepEqual([queue.dropped, lines.map(({ fields }) => fields["fault"])], [1, ["write is broken"]]);
    isBroken = false;
    push(queue, "kept");
    await queue.close();
    assert.deepEqual([queue.dropped, taken], [1, ["kept\n"]]);
  });
