import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Retry } from "../../src/ops/retry.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { SkewedClock, SKEWS } from "../helpers/skewed-clock.js";

describe("a retry", () => {
  test("comes once, after its delay", () => {
    const clock = new ManualClock();
    const retry = new Retry(clock);
    let tries = 0;
    retry.after(100, () => (tries += 1));
    clock.advance(99);
    assert.deepEqual([tries, retry.isPending], [0, true]);
    clock.advance(1);
    assert.deepEqual([tries, retry.isPending], [1, false]);
    clock.advance(1000);
    assert.equal(tries, 1);
  });

  for (const { name, skewMs } of SKEWS) {
    test(`comes whenever its timer fires, ${name}, and so does the one after it`, () => {
      const clock = new SkewedClock(skewMs);
      const retry = new Retry(clock);
      const pendingAt: boolean[] = [];
      const attempt = (): void => {
        pendingAt.push(retry.isPending);
        if (pendingAt.length < 3) retry.after(100, attempt);
      };
      retry.after(100, attempt);
      clock.advance(3 * Math.max(0, 100 + skewMs));
      assert.deepEqual(pendingAt, [false, false, false]);
      assert.equal(clock.pendingCount, 0);
    });
  }

  test("is one for all who wait for it", async () => {
    const clock = new ManualClock();
    const retry = new Retry(clock);
    const first = retry.wait(100);
    clock.advance(60);
    const second = retry.wait(100);
    assert.equal(clock.pendingCount, 1);
    clock.advance(40);
    await Promise.all([first, second]);
    assert.equal(retry.isPending, false);
  });

  test("comes at once when it is asked to, and not again", () => {
    const clock = new ManualClock();
    const retry = new Retry(clock);
    retry.now();
    let tries = 0;
    retry.after(100, () => (tries += 1));
    retry.now();
    retry.now();
    clock.advance(1000);
    assert.deepEqual([tries, clock.pendingCount, retry.isPending], [1, 0, false]);
  });

  test("never comes once it is cancelled; another may", () => {
    const clock = new ManualClock();
    const retry = new Retry(clock);
    const tries: string[] = [];
    retry.after(100, () => tries.push("first"));
    retry.cancel();
    assert.equal(retry.isPending, false);
    retry.after(50, () => tries.push("second"));
    clock.advance(1000);
    assert.deepEqual(tries, ["second"]);
  });
});
