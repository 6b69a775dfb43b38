import assert from "node:assert/strict";
import { test } from "node:test";
import { ReadFreshness } from "../../src/protocol/cache-control.js";

const MINUTE_MS = 60_000;

function assertTable(maxAgeMs: number, table: readonly (readonly [remainingMs: number | null, value: string])[]): void {
  const freshness = new ReadFreshness(maxAgeMs);
  for (const [remainingMs, value] of table) {
    assert.equal(freshness.cacheControl(false, remainingMs), value);
    assert.equal(freshness.cacheControl(true, remainingMs), value.replace("public", "private"));
  }
}

test("no cache is told to serve a stream beyond its remaining lifetime", () => {
  assertTable(MINUTE_MS, [
    [null, "public, max-age=60, stale-while-revalidate=300"],
    [1e18, "public, max-age=60, stale-while-revalidate=300"],
    [360_000, "public, max-age=60, stale-while-revalidate=300"],
    [359_999, "public, max-age=60, stale-while-revalidate=299"],
    [61_000, "public, max-age=60, stale-while-revalidate=1"],
    [60_999, "public, max-age=60"],
    [60_000, "public, max-age=60"],
    [59_999, "public, max-age=59"],
    [1_000, "public, max-age=1"],
    [999, "no-store"],
    [0, "no-store"],
    [-5_000, "no-store"],
  ]);
});

test("a cache may serve a read for as long as it is told, and five times as long while it asks", () => {
  assertTable(5_500, [
    [null, "public, max-age=5, stale-while-revalidate=25"],
    [29_000, "public, max-age=5, stale-while-revalidate=24"],
  ]);
});

test("a cache that may show nothing without asking asks each time", () => {
  for (const maxAgeMs of [0, 999]) {
    assertTable(maxAgeMs, [
      [null, "public, max-age=0, must-revalidate"],
      [5_000, "public, max-age=0, must-revalidate"],
      [0, "no-store"],
    ]);
  }
});
