import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../../../src/ops/clock.js";
import { ClusterStorage } from "../../../../src/storage/nats/cluster-storage.js";
import type { LogMessage } from "../../../../src/storage/nats/log/replicated-log.js";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import { append, bytesOf, created, keptLog, loaded, recordOf } from "../../../helpers/engine.js";
import { MemoryCluster, MemoryLog } from "../../../helpers/memory-log.js";

const MOST = 100;

/** A log that gives at most so many messages at a time, and counts how often it is asked. */
class CountingLog extends MemoryLog {
  ranges = 0;

  override async range(subject: string, from: number, maxBytes: number): Promise<readonly LogMessage[]> {
    this.ranges += 1;
    return (await super.range(subject, from, maxBytes)).slice(0, MOST);
  }
}

function frontEnd(cluster: MemoryCluster): { readonly log: CountingLog; readonly storage: ClusterStorage } {
  const clock = { ...systemClock(), after: (_: number, run: () => void) => (setImmediate(run), { cancel: () => undefined }) };
  const log = new CountingLog(cluster, clock, Math.random);
  const options = { log, subjects: new Subjects("test", 1), clock, notices: keptLog().log, cacheBytes: 0, timeoutMs: 30_000 };
  return { log, storage: new ClusterStorage(options) };
}

describe("a read of very many small messages", () => {
  test("asks for each of them once, wherever it ends, and the one behind it as well", async (t) => {
    const cluster = new MemoryCluster();
    const [one, other] = [frontEnd(cluster), frontEnd(cluster)];
    t.after(() => Promise.all([one.storage.close(), other.storage.close()]));
    const stream = await created(one.storage, "s");
    const payload = bytesOf(1000 * 10);
    for (let at = 0; at < payload.length; at += 10)
      assert.equal(await append(one.storage, stream, recordOf(payload.subarray(at, at + 10)), at), "durable");
    const seen = await loaded(other.storage, "s");
    for (const [from, end] of [
      [0, 4000],
      [4000, 8000],
      [8000, 10_000],
    ] as const) {
      assert.equal(await other.storage.endOfRead(seen, from, Math.min(4000 + 3, 10_000 - from - 1)), from === 8000 ? 9990 : end);
      assert.deepEqual(await other.storage.read(seen, from, end - from), payload.subarray(from, end));
    }
    // Ten times the most at a time, and now and then the rest of one.
    assert.ok(other.log.ranges <= 14, `asked ${other.log.ranges} times`);
    assert.deepEqual(await other.storage.read(seen, 25, 5), payload.subarray(25, 30));
  });
});
