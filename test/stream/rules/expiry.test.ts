import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deadlineOf, ExpiryQueue, slides } from "../../../src/stream/rules/expiry.js";
import { configOf } from "../../helpers/engine.js";
import { ManualClock } from "../../helpers/manual-clock.js";

describe("a deadline", () => {
  for (const [what, config, mode, deadlineMs, moves] of [
    ["never comes without a lifetime", {}, "sliding", Infinity, false],
    ["slides with the last access", { ttlSeconds: 60 }, "sliding", 5000 + 60_000, true],
    ["counts from creation where it is fixed", { ttlSeconds: 60 }, "fixed", 1000 + 60_000, false],
    ["comes at once for a TTL of 0", { ttlSeconds: 0 }, "sliding", 5000, true],
    ["stays where an expiry puts it", { expiresAtMs: 77 }, "sliding", 77, false],
    ["overflows nothing for an endless TTL", { ttlSeconds: 1e15 }, "sliding", 5000 + 1e18, true],
  ] as const) {
    test(what, () => {
      const full = configOf({ createdAtMs: 1000, ...config });
      assert.equal(deadlineOf(full, 5000, mode), deadlineMs);
      assert.equal(slides(full, mode), moves);
    });
  }
});

interface Item {
  deadlineMs: number;
  expiredAtMs: number | null;
}

function queueOf(): { clock: ManualClock; queue: ExpiryQueue<Item>; item: (afterMs: number) => Item } {
  const clock = new ManualClock(1_000_000_123);
  const queue = new ExpiryQueue<Item>(clock, (item) => (item.expiredAtMs = clock.nowMs()));
  const item = (afterMs: number): Item => {
    const made = { deadlineMs: clock.nowMs() + afterMs, expiredAtMs: null };
    queue.add(made);
    return made;
  };
  return { clock, queue, item };
}

describe("the queue", () => {
  test("expires each item within a second of its deadline, and never early", () => {
    const { clock, queue, item } = queueOf();
    const items = Array.from({ length: 300 }, (_, index) => item(index * 37));
    for (let step = 0; step < 2000; step += 1) clock.advance(7);
    for (const { deadlineMs, expiredAtMs } of items) {
      assert.ok(
        expiredAtMs !== null && expiredAtMs >= deadlineMs && expiredAtMs < deadlineMs + 1000,
        `${deadlineMs} expired at ${expiredAtMs}`,
      );
    }
    assert.equal(queue.size, 0);
    assert.equal(clock.pendingCount, 0, "an empty queue has no timer");
  });

  test("takes thousands that are due at once, a few at a time", () => {
    const { clock, queue, item } = queueOf();
    const items = Array.from({ length: 5000 }, () => item(100));
    clock.advance(500);
    const afterOneTick = items.filter(({ expiredAtMs }) => expiredAtMs !== null).length;
    assert.ok(afterOneTick > 0 && afterOneTick <= 1000, `${afterOneTick} at once`);
    clock.advance(5000);
    assert.equal(queue.size, 0);
    const together = new Map<number | null, number>();
    for (const { expiredAtMs } of items) together.set(expiredAtMs, (together.get(expiredAtMs) ?? 0) + 1);
    assert.ok(!together.has(null));
    // What expires together holds up everybody else for as long as it takes.
    assert.ok(Math.max(...together.values()) <= 20, `${Math.max(...together.values())} without a pause`);
  });

  test("keeps up with tens of thousands of items whose deadlines move all the time", () => {
    const { clock, item } = queueOf();
    const moving = Array.from({ length: 20_000 }, () => item(1000));
    for (let step = 0; step < 10; step += 1) {
      clock.advance(500);
      for (const moved of moving) moved.deadlineMs = clock.nowMs() + 1000;
    }
    assert.ok(moving.every(({ expiredAtMs }) => expiredAtMs === null));
    const last = item(0);
    clock.advance(1000);
    assert.ok(last.expiredAtMs !== null, "one that is due does not wait behind them");
  });

  test("lets a deadline move later, also over and over", () => {
    const { clock, queue, item } = queueOf();
    const moved = item(1000);
    for (let step = 0; step < 20; step += 1) {
      clock.advance(900);
      moved.deadlineMs = clock.nowMs() + 1000;
    }
    assert.equal(moved.expiredAtMs, null);
    assert.equal(queue.size, 1);
    clock.advance(2000);
    assert.ok(moved.expiredAtMs !== null && moved.expiredAtMs >= moved.deadlineMs);
  });

  test("forgets an item whose deadline moved to never", () => {
    const { clock, queue, item } = queueOf();
    const kept = item(100);
    kept.deadlineMs = Infinity;
    clock.advance(2000);
    assert.deepEqual([kept.expiredAtMs, queue.size], [null, 0]);
  });

  test("takes no item that never expires", () => {
    const { clock, queue, item } = queueOf();
    item(Infinity);
    assert.deepEqual([queue.size, clock.pendingCount], [0, 0]);
  });

  test("expires an item that was due long ago at the next tick", () => {
    const { clock, item } = queueOf();
    const late = item(-1e9);
    clock.advance(500);
    assert.notEqual(late.expiredAtMs, null);
  });

  test("expires nothing that was removed", () => {
    const { clock, queue, item } = queueOf();
    const [gone, stays] = [item(100), item(100)];
    queue.remove(gone);
    queue.remove(gone);
    clock.advance(2000);
    assert.deepEqual([gone.expiredAtMs, stays.expiredAtMs === null], [null, false]);
  });

  test("finds the next deadline fast after a long pause, and far away", () => {
    const { clock, item } = queueOf();
    const far = item(1000 * 3600 * 24 * 365);
    clock.advance(1000);
    const near = item(1000);
    clock.advance(3000);
    assert.ok(near.expiredAtMs !== null);
    assert.equal(far.expiredAtMs, null);
  });

  test("may be given an item again while that expires", () => {
    const clock = new ManualClock();
    let tries = 0;
    const queue = new ExpiryQueue<Item>(clock, (item) => {
      tries += 1;
      if (tries === 3) return;
      queue.add(item);
    });
    queue.add({ deadlineMs: clock.nowMs() + 10, expiredAtMs: null });
    clock.advance(5000);
    assert.equal(tries, 3);
    assert.equal(queue.size, 0);
  });

  test("lets items that can't expire now, and are added again, hold up no other", () => {
    const clock = new ManualClock();
    const tries = new Map<Item, number>();
    const expired: Item[] = [];
    const queue = new ExpiryQueue<Item>(clock, (item) => {
      tries.set(item, (tries.get(item) ?? 0) + 1);
      if (item === last) expired.push(item);
      else queue.add(item);
    });
    const itemAt = (afterMs: number): Item => ({ deadlineMs: clock.nowMs() + afterMs, expiredAtMs: null });
    const stuck = Array.from({ length: 5 }, () => itemAt(1000));
    const last = itemAt(3000);
    for (const item of [...stuck, last]) queue.add(item);
    clock.advance(4000);
    assert.deepEqual(expired, [last]);
    for (const item of stuck) assert.ok((tries.get(item) ?? 0) <= 13, `${tries.get(item)} tries: more than one a tick`);
    queue.stop();
  });

  test("has an item once that was added again with a later deadline", () => {
    const { clock, queue, item } = queueOf();
    const moved = item(300);
    moved.deadlineMs += 1000;
    queue.add(moved);
    assert.equal(queue.size, 1);
    const other = item(400);
    clock.advance(1000);
    assert.deepEqual([moved.expiredAtMs, other.expiredAtMs !== null], [null, true]);
    clock.advance(1000);
    assert.notEqual(moved.expiredAtMs, null);
    moved.deadlineMs = Infinity;
    queue.add(moved);
    const last = item(400);
    clock.advance(1000);
    assert.deepEqual([last.expiredAtMs !== null, queue.size], [true, 0]);
  });

  test("that was stopped expires nothing and has no timer", () => {
    const { clock, queue, item } = queueOf();
    const left = item(100);
    queue.stop();
    const late = item(100);
    clock.advance(5000);
    assert.deepEqual([left.expiredAtMs, late.expiredAtMs, queue.size, clock.pendingCount], [null, null, 0, 0]);
  });
});
