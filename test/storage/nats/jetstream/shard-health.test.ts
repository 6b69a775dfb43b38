import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ShardHealth } from "../../../../src/storage/nats/jetstream/shard-health.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

describe("the health of shards", () => {
  test("asks those of which nothing was heard, and names those that stay silent", () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const health = new ShardHealth(
      ["a", "b"],
      clock,
      (shard) => asked.push(shard),
      () => null,
    );
    clock.advance(500);
    health.heard("a");
    clock.advance(500);
    assert.deepEqual(asked, ["b"]);
    assert.deepEqual(health.health, { writable: true, reason: null });
    for (let second = 0; second < 4; second += 1) {
      clock.advance(1000);
      health.heard("a");
    }
    assert.deepEqual(health.health, { writable: false, reason: "no leader answers for b" });
    health.heard("b");
    assert.deepEqual(health.health, { writable: true, reason: null });
    health.stop();
  });

  test("says at once that no server is connected", () => {
    const health = new ShardHealth(
      ["a"],
      new ManualClock(),
      () => {},
      () => "nobody is connected",
    );
    assert.deepEqual(health.health, { writable: false, reason: "nobody is connected" });
    health.stop();
  });
});
