import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Fullness } from "../../../../src/storage/nats/log/fullness.js";
import { keptLog } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

/** What is told of parts, and the clock by which it is. */
function telling() {
  const clock = new ManualClock();
  const { log, lines } = keptLog();
  const fullness = new Fullness(log, () => clock.nowMs());
  const told = (): readonly string[] => lines.map(({ level, message }) => `${level} ${message}`);
  return { clock, fullness, told };
}

const FULL = "error SD_b_0 is full: it takes no more until streams are deleted or its limit is raised";
const ROOM = "info SD_b_0 has room again";

describe("a part of the log that has no room", () => {
  test("is told of once, and so is its end", () => {
    const { clock, fullness, told } = telling();
    fullness.published("SD_b_0", 100, "stored");
    for (let times = 0; times < 3; times += 1) fullness.published("SD_b_0", 100, "full");
    assert.deepEqual(told(), [FULL]);
    clock.advance(5000);
    fullness.published("SD_b_0", 100, "stored");
    fullness.published("SD_b_0", 100, "stored");
    assert.deepEqual(told(), [FULL, ROOM]);
    fullness.published("SD_b_0", 100, "full");
    assert.deepEqual(told(), [FULL, ROOM, FULL]);
  });

  test("has room again once it takes as much as the smallest that it refused", () => {
    const { clock, fullness, told } = telling();
    for (const bytes of [1000, 100, 500]) fullness.published("SD_b_0", bytes, "full");
    clock.advance(60_000);
    fullness.published("SD_b_0", 99, "stored");
    assert.deepEqual(told(), [FULL]);
    fullness.published("SD_b_0", 100, "stored");
    assert.deepEqual(told(), [FULL, ROOM]);
  });

  test("is not told of anew for each message that finds a little room", () => {
    const { clock, fullness, told } = telling();
    for (let second = 0; second < 20; second += 1) {
      fullness.published("SD_b_0", 100, second % 2 === 0 ? "full" : "stored");
      clock.advance(1000);
    }
    assert.deepEqual(told(), [FULL]);
  });

  test("says nothing of the others, nor do other outcomes", () => {
    const { clock, fullness, told } = telling();
    fullness.published("SD_b_0", 100, "full");
    clock.advance(5000);
    fullness.published("SD_b_1", 100, "stored");
    for (const kind of ["moved", "pending", "untaken", "refused", "unknown"] as const) fullness.published("SD_b_0", 100, kind);
    assert.deepEqual(told(), [FULL]);
  });
});
