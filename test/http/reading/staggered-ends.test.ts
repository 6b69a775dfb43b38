import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { endsWindowMs, staggerEnds } from "../../../src/http/reading/staggered-ends.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { startServer } from "../../helpers/test-server.js";

describe("the ends of live reads", () => {
  test("take a millisecond each, at most four fifths of the time that a stop has; a few end together", () => {
    const expected: readonly (readonly [number, number, number])[] = [
      [0, 10_000, 0],
      [16, 10_000, 0],
      [17, 10_000, 17],
      [10_000, 10_000, 8000],
      [10_000, 60_000, 10_000],
      [10_000, 0, 0],
    ];
    for (const [reads, timeoutMs, windowMs] of expected) assert.equal(endsWindowMs(reads, timeoutMs), windowMs, `${reads} ${timeoutMs}`);
  });

  test("are spread evenly, and so is when their clients come back", () => {
    const clock = new ManualClock();
    const comeBacks: number[] = [];
    let chance = 0;
    const random = (): number => (chance = (chance + 0.1) % 1);
    staggerEnds(
      { clock, random },
      Array.from({ length: 10_000 }, () => (ms) => void comeBacks.push(ms ?? NaN)),
      10_000,
    );
    assert.equal(comeBacks.length, 25);
    const counts = [comeBacks.length];
    for (let second = 1; second <= 8; second += 1) {
      for (let step = 0; step < 50; step += 1) clock.advance(20);
      counts.push(comeBacks.length);
    }
    assert.deepEqual(counts, [25, 1275, 2525, 3775, 5025, 6275, 7525, 8775, 10_000]);
    assert.ok(Math.min(...comeBacks) >= 100 && Math.max(...comeBacks) > 7000 && Math.max(...comeBacks) <= 8100);
  });
});

test("many readers of events are told when to come back, after their last whole event", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" }, body: "x" });
  const readers = await Promise.all(Array.from({ length: 20 }, () => server.begin("GET", "a?live=sse&offset=-1")));
  for (const reader of readers) {
    await reader.head();
    await reader.until("upToDate");
    await reader.until("\n\n");
  }
  const stopped = server.server.close();
  server.clock.advance(20);
  for (const reader of readers) assert.match(await reader.rest(), /^retry: 1[012]\d\n\n$/);
  await stopped;
});
