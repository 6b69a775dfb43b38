import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import { openCluster } from "../../src/storage/nats/open-cluster.js";
import { keptLog } from "../helpers/engine.js";
import { until } from "../helpers/until.js";
import { addressOf } from "./buckets.js";
import { NatsCluster } from "./nats-cluster.js";

test(
  "the loss of a majority is told once, and its end; the search for another server is not told again",
  { timeout: 240_000 },
  async (t) => {
    const cluster = await NatsCluster.start({ size: 3 });
    t.after(() => cluster.stop());
    const { log, lines } = keptLog();
    const address = addressOf(cluster, "?shards=1", "b");
    const storage = await openCluster({ address, credsFile: "", timeoutMs: 30_000, clock: systemClock(), log });
    t.after(() => storage.close());
    const told = (level: string, message: string): number =>
      lines.filter((line) => line.level === level && line.message === message).length;
    const leaving = "the NATS server sees no majority of the others: trying another";
    const again = "connected to the NATS cluster again";

    await Promise.all([cluster.kill(0), cluster.kill(1)]);
    await until(() => told("debug", leaving) > 1 && told("debug", again) > 0);
    assert.deepEqual([told("error", "no leader answers for SD_b_0"), told("warn", leaving)], [1, 1]);
    // One at most where its own server was killed, and one of the first search.
    assert.ok(told("info", again) <= 2);
    await Promise.all([cluster.startServer(0), cluster.startServer(1)]);
    await until(() => told("info", "SD_b_0 has a leader again") > 0);
    assert.equal(storage.health().writable, true);
    // Nor is the JetStream stream taken for another when a server that was started again leads it.
    const errors = lines.filter(({ level }) => level === "error").map(({ message }) => message);
    // The stream of touches has a leader of its own, which may be there again before anybody misses it.
    const ofTouches = "no leader answers for SD_b_touch";
    assert.ok(told("error", ofTouches) <= 1);
    assert.deepEqual(
      errors.filter((message) => message !== ofTouches),
      ["no leader answers for SD_b_0"],
    );
  },
);
