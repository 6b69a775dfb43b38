import assert from "node:assert/strict";
import { test } from "node:test";
import { readCacheControl } from "../../src/protocol/cache-control.js";

test("no cache is told to serve a stream beyond its remaining lifetime", () => {
  const table: [remainingMs: number | null, value: string][] = [
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
  ];
  for (const [remainingMs, value] of table) {
    assert.equal(readCacheControl({ authenticated: false, remainingMs }), value);
    assert.equal(readCacheControl({ authenticated: true, remainingMs }), value.replace("public", "private"));
  }
});
