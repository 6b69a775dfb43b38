import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClockHand } from "../../../src/stream/eviction/clock-hand.js";
import type { Stream } from "../../../src/stream/loaded/stream.js";

/** All that is asked of a stream here. */
interface Visited {
  readonly name: string;
  recentlyUsed: boolean;
  isIdle: boolean;
}

function handOver(visited: readonly Visited[], log: string[] = []): ClockHand {
  const streams = visited as unknown as readonly Stream[]; // see above
  const mayLeave = (stream: Stream): boolean => {
    log.push(stream.name);
    return visited.find(({ name }) => name === stream.name)?.isIdle ?? false;
  };
  return new ClockHand(() => streams.values(), mayLeave);
}

function visitedOf(count: number, recentlyUsed: boolean, isIdle: boolean): Visited[] {
  return Array.from({ length: count }, (_, at) => ({ name: `s${at}`, recentlyUsed, isIdle }));
}

describe("the search for an idle stream", () => {
  test("goes on where it was, and begins again at the end", () => {
    const hand = handOver(visitedOf(3, false, true));
    assert.deepEqual(
      [1, 2, 3, 4].map(() => hand.findIdle()?.name),
      ["s0", "s1", "s2", "s0"],
    );
    hand.rest();
    assert.equal(hand.findIdle()?.name, "s0");
  });

  test("passes once by what was used", () => {
    const visited = visitedOf(3, true, true);
    const hand = handOver(visited);
    assert.equal(hand.findIdle()?.name, "s0");
    assert.deepEqual(
      visited.map(({ recentlyUsed }) => recentlyUsed),
      [false, false, false],
    );
  });

  test("passes by what may not leave, and does not look for ever", () => {
    const asked: string[] = [];
    const visited = visitedOf(100, false, false);
    const hand = handOver(visited, asked);
    assert.equal(hand.findIdle(), null);
    assert.equal(asked.length, 64);
    for (const each of visited) each.isIdle = each.name === "s99";
    assert.equal(hand.findIdle()?.name, "s99");
  });

  test("finds nothing where there is nothing", () => {
    assert.equal(handOver([]).findIdle(), null);
  });
});
