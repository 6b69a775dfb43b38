import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { RateLimiter } from "../../../src/http/bounds/rate-limiter.js";
import { Random } from "../../helpers/random.js";

const MIB = 1024 * 1024;
const START_MS = 1_000_000;

/** How many requests of a key are admitted before the first is refused. */
function admittedAtOnce(limiter: RateLimiter, key: string, nowMs: number): number {
  let count = 0;
  while (limiter.admit(key, null, nowMs) === 0) count += 1;
  return count;
}

describe("a rate of requests", () => {
  test("lets a second's worth through at once, and then as many as time brings", () => {
    const limiter = new RateLimiter({ requests: 10, bytes: null });
    assert.equal(admittedAtOnce(limiter, "a", START_MS), 10);
    assert.equal(limiter.admit("a", null, START_MS), 1);
    assert.equal(admittedAtOnce(limiter, "a", START_MS + 300), 3);
    assert.equal(admittedAtOnce(limiter, "a", START_MS + 60_000), 10);
  });

  test("counts each key by itself", () => {
    const limiter = new RateLimiter({ requests: 1, bytes: null });
    for (const key of ["a", "b", ""])
      assert.deepEqual(
        [0, 1].map(() => limiter.admit(key, null, START_MS)),
        [0, 1],
        key,
      );
  });

  test("tells what a request would wait, and takes nothing for that", () => {
    const limiter = new RateLimiter({ requests: 1, bytes: 10 });
    assert.equal(limiter.waitOf("a", START_MS), 0);
    assert.equal(limiter.size, 0, "nor is who asks remembered");
    assert.equal(limiter.admit("a", null, START_MS), 0);
    assert.deepEqual([limiter.waitOf("a", START_MS), limiter.waitOf("a", START_MS), limiter.waitOf("b", START_MS)], [1, 1, 0]);
    assert.equal(limiter.waitOf("a", START_MS + 1000), 0);
    limiter.charge("a", null, 40, START_MS + 1000);
    assert.equal(limiter.waitOf("a", START_MS + 1000), 4);
    assert.equal(new RateLimiter(null).waitOf("a", START_MS), 0);
  });

  test("takes nothing for a request that is refused", () => {
    const limiter = new RateLimiter({ requests: 1, bytes: null });
    assert.equal(limiter.admit("a", null, START_MS), 0);
    for (let ms = 0; ms < 1000; ms += 100) assert.equal(limiter.admit("a", null, START_MS + ms), 1);
    assert.equal(limiter.admit("a", null, START_MS + 1000), 0);
  });

  test("is the caller's own where there is one, also where the server has none", () => {
    const limiter = new RateLimiter(null);
    for (let count = 0; count < 100; count += 1) assert.equal(limiter.admit("a", null, START_MS), 0);
    assert.equal(limiter.size, 0);
    assert.deepEqual(
      [0, 1, 2].map(() => limiter.admit("a", { requests: 2, bytes: null }, START_MS)),
      [0, 0, 1],
    );
  });

  test("follows a rate that has changed", () => {
    const limiter = new RateLimiter(null);
    assert.equal(limiter.admit("a", { requests: 100, bytes: null }, START_MS), 0);
    assert.deepEqual(
      [0, 1].map(() => limiter.admit("a", { requests: 1, bytes: null }, START_MS)),
      [0, 1],
    );
  });

  test("is not held up by a clock that goes back", () => {
    const limiter = new RateLimiter({ requests: 1, bytes: null });
    assert.equal(limiter.admit("a", null, START_MS), 0);
    assert.equal(limiter.admit("a", null, START_MS - 60_000), 1);
    assert.equal(limiter.admit("a", null, START_MS - 59_000), 0);
  });
});

describe("a rate of bytes", () => {
  const rate = { requests: 1000, bytes: 100 };

  test("lets a request bring more than there is, and has it wait after it", () => {
    const limiter = new RateLimiter(rate);
    assert.equal(limiter.admit("a", null, START_MS), 0);
    limiter.charge("a", null, 1000, START_MS);
    assert.equal(limiter.admit("a", null, START_MS), 10);
    assert.equal(limiter.admit("a", null, START_MS + 9000), 1);
    assert.equal(limiter.admit("a", null, START_MS + 10_000), 0);
  });

  test("wants more than nothing: an empty bucket admits no request", () => {
    const limiter = new RateLimiter(rate);
    limiter.charge("a", null, 100, START_MS);
    assert.equal(limiter.admit("a", null, START_MS), 1);
    limiter.charge("b", null, 99, START_MS);
    assert.equal(limiter.admit("b", null, START_MS), 0);
  });

  test("does not forgive what is charged late", () => {
    const limiter = new RateLimiter(rate);
    assert.equal(limiter.admit("a", null, START_MS), 0);
    limiter.charge("a", null, 1000, START_MS + 60_000);
    assert.equal(limiter.admit("a", null, START_MS + 60_000), 10);
  });

  test("charges nothing where only requests are limited", () => {
    const limiter = new RateLimiter({ requests: 5, bytes: null });
    limiter.charge("a", null, 1e9, START_MS);
    assert.equal(admittedAtOnce(limiter, "a", START_MS), 5);
  });
});

test("after as many seconds as a refusal says a request is admitted, and not a second earlier", () => {
  const random = new Random(7);
  for (let round = 0; round < 2000; round += 1) {
    const rate = { requests: 1 + random.integer(0, 49), bytes: 1 + random.integer(0, 999) };
    const limiter = new RateLimiter(rate);
    let nowMs = START_MS + random.integer(0, 9_999);
    let seconds = 0;
    while (seconds === 0) {
      seconds = limiter.admit("a", null, nowMs);
      if (random.chance(0.5)) limiter.charge("a", null, random.integer(0, 4999), nowMs);
      else nowMs += random.integer(0, 19);
    }
    seconds = limiter.admit("a", null, nowMs);
    if (seconds === 0) continue;
    assert.ok(Number.isInteger(seconds) && seconds >= 1);
    if (seconds > 1) assert.notEqual(limiter.admit("a", null, nowMs + (seconds - 1) * 1000), 0, `${seconds} of ${JSON.stringify(rate)}`);
    assert.equal(limiter.admit("a", null, nowMs + seconds * 1000), 0, `${seconds} of ${JSON.stringify(rate)}`);
  }
});

describe("the keys that are remembered", () => {
  test("are those that were used last", () => {
    const limiter = new RateLimiter({ requests: 1, bytes: null }, 3);
    for (const key of ["a", "b", "c", "a", "d"]) limiter.admit(key, null, START_MS);
    assert.equal(limiter.size, 3);
    // c, a and d are known, and have used theirs; b begins anew.
    assert.deepEqual(
      ["c", "a", "d"].map((key) => limiter.admit(key, null, START_MS)),
      [1, 1, 1],
    );
    assert.equal(limiter.admit("b", null, START_MS), 0);
  });

  test("are found by a model of them, whatever comes", () => {
    for (const maxKeys of [1, 2, 7, 300]) {
      const random = new Random(maxKeys);
      const limiter = new RateLimiter({ requests: 1, bytes: null }, maxKeys);
      const known = new Set<string>();
      for (let step = 0; step < 5_000; step += 1) {
        const key = String(random.integer(0, maxKeys * 2 - 1));
        assert.equal(limiter.admit(key, null, START_MS), known.has(key) ? 1 : 0);
        known.delete(key);
        known.add(key);
        if (known.size > maxKeys) known.delete([...known][0] ?? "");
      }
      assert.equal(limiter.size, maxKeys);
    }
  });

  test("take at most 16 MiB, whoever comes: a million addresses", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void; // the flag has made it
    const usedBytes = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = usedBytes();
    const limiter = new RateLimiter({ requests: 200, bytes: 4 * MIB });
    for (let at = 0; at < 1_000_000; at += 1) {
      // As a header brings them: parts of longer texts, which they must not keep.
      const line = `${"x".repeat(200)}2001:db8:${at.toString(16).padStart(5, "0")}:abcd::`;
      limiter.admit(line.slice(200), null, START_MS + at);
    }
    assert.equal(limiter.size, 100_000);
    const usedMiB = (usedBytes() - before) / MIB;
    assert.ok(usedMiB < 16, `${usedMiB} MiB`);
    limiter.charge("2001:db8:fffff:abcd::", null, 1, START_MS);
  });
});
