import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LINGERING_MS, SequenceAges } from "../../../../src/storage/nats/log/sequence-ages.js";

const CREATED = "2026-11-29T10:00:00Z";

describe("a message has settled", () => {
  function ages(): { readonly saw: (last: number, created?: string) => void; pass(ms: number): void; has(sequence: number): boolean } {
    let nowMs = 5;
    const known = new SequenceAges(() => nowMs);
    return {
      saw: (last, created = CREATED) => known.saw("a", { created, last }),
      pass: (ms) => void (nowMs += ms),
      has: (sequence) => known.hasSettled("a", sequence),
    };
  }

  test("once its shard was seen with it for long enough", () => {
    const { saw, pass, has } = ages();
    assert.equal(has(1), false, "nothing is known of a shard that was never seen");
    saw(7);
    pass(LINGERING_MS - 1);
    assert.equal(has(7), false);
    pass(1);
    assert.deepEqual([has(7), has(8)], [true, false]);
  });

  test("and with each that its shard gets, as long as it is looked at", () => {
    const { saw, pass, has } = ages();
    const stepMs = 30_000;
    const settling = LINGERING_MS / stepMs;
    for (let looks = 0; looks < 100; looks += 1) {
      saw(looks);
      const [oldest, next] = [looks - settling, looks - settling + 1];
      if (oldest >= 0) assert.equal(has(oldest), true, `${oldest} after ${looks}`);
      assert.equal(has(Math.max(0, next)), false, `${next} after ${looks}`);
      pass(stepMs);
    }
  });

  test("not sooner where its shard is looked at all the time", () => {
    const { saw, pass, has } = ages();
    for (let looks = 0; looks * 1000 < LINGERING_MS; looks += 1) {
      saw(looks);
      pass(1000);
    }
    assert.deepEqual([has(0), has(30)], [true, false]);
    pass(30_000);
    assert.equal(has(30), false, "it is known by the mark after it");
    pass(10_000);
    assert.equal(has(30), true);
  });

  test("anew where its shard was made anew, or has less than it had", () => {
    for (const again of [(saw: (last: number, created?: string) => void) => saw(9, "later"), (saw: (last: number) => void) => saw(6)]) {
      const { saw, pass, has } = ages();
      saw(7);
      pass(LINGERING_MS);
      assert.equal(has(3), true);
      again(saw);
      assert.equal(has(3), false);
      pass(LINGERING_MS);
      assert.equal(has(3), true);
    }
  });

  test("anew where its shard has another leader, or all may have", () => {
    const known = new SequenceAges(() => nowMs);
    let nowMs = 0;
    for (const forgotten of ["a", "b", null]) {
      known.saw("a", { created: CREATED, last: 1 });
      nowMs += LINGERING_MS;
      known.forget(forgotten);
      assert.equal(known.hasSettled("a", 1), forgotten === "b");
    }
  });
});
