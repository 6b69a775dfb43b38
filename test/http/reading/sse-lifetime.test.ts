import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import { lifetimeOf } from "../../../src/http/reading/sse-lifetime.js";

test("lifetimes differ by a tenth at most, and there are few of them", () => {
  const settings = { sseLifetimeMs: 60_000 } as Context["settings"]; // all that is asked of it
  const lifetimes = Array.from({ length: 1000 }, (_, at) => lifetimeOf({ settings, random: () => at / 1000 }));
  assert.deepEqual([Math.min(...lifetimes), new Set(lifetimes).size], [54_000, 64]);
  assert.ok(Math.max(...lifetimes) < 66_000);
});
