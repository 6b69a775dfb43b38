import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { systemClock } from "../../../../src/ops/clock.js";
import { ClusterStorage } from "../../../../src/storage/nats/cluster-storage.js";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import { MessageCache } from "../../../../src/storage/nats/memory/message-cache.js";
import { Reserve, RESERVED_MESSAGES } from "../../../../src/storage/nats/writing/reserve.js";
import { append, bytesOf, created, keptLog, loaded, recordOf, remove } from "../../../helpers/engine.js";
import { MemoryCluster, MemoryLog } from "../../../helpers/memory-log.js";

const subjects = new Subjects("test", 1);
/** The moment that a log takes for each call is none here. */
const clock = { ...systemClock(), after: (_: number, run: () => void) => (setImmediate(run), { cancel: () => undefined }) };

function logOf(cluster: MemoryCluster): MemoryLog {
  return new MemoryLog(cluster, clock, Math.random);
}

function reserveOf(cluster: MemoryCluster): Reserve {
  return new Reserve({ log: logOf(cluster), subjects, clock, cache: new MessageCache(0) });
}

/** A front end on a log, which is closed when the test is over. */
function open(t: TestContext, cluster: MemoryCluster, log = logOf(cluster)): ClusterStorage {
  const options = { log, subjects, clock, notices: keptLog().log, cacheBytes: 0, timeoutMs: 30_000 };
  const storage = new ClusterStorage(options);
  t.after(() => storage.close());
  return storage;
}

/** The messages in reserve. */
function held(cluster: MemoryCluster): number {
  return cluster.subjects.get(subjects.ofReserve(0))?.length ?? 0;
}

describe("what is held in reserve", () => {
  test("is as much as it has to be, however many front ends fill it at a time", async () => {
    const cluster = new MemoryCluster();
    const reserves = Array.from({ length: 4 }, () => reserveOf(cluster));
    await Promise.all(reserves.map((reserve) => reserve.fill(assert.ifError)));
    assert.equal(held(cluster), RESERVED_MESSAGES);
  });

  test("is given in pieces until there is none, and filled up by whoever has spent it", async () => {
    const cluster = new MemoryCluster();
    const [one, other] = [reserveOf(cluster), reserveOf(cluster)];
    await one.fill(assert.ifError);
    for (let left = RESERVED_MESSAGES - 1; left >= 0; left -= 1) {
      assert.equal(await one.makeRoomFor("s"), true);
      assert.equal(held(cluster), left);
    }
    assert.equal(await one.makeRoomFor("s"), false);
    await other.refillFor("s");
    assert.equal(held(cluster), 0);
    cluster.maxBytes = 10_000;
    await one.refillFor("s");
    assert.equal(held(cluster), 2);
    cluster.maxBytes = Infinity;
    await one.refillFor("s");
    assert.equal(held(cluster), RESERVED_MESSAGES);
  });

  test("is enough for a deletion while appends take the room that it makes", async (t) => {
    const cluster = new MemoryCluster();
    const [one, other] = [open(t, cluster), open(t, cluster)];
    const doomed = await created(one, "doomed", "bytes");
    const busy = await created(other, "busy");
    await reserveOf(cluster).fill(assert.ifError);
    cluster.maxBytes = cluster.bytes;
    assert.equal(await append(other, busy, recordOf("x"), 0), "storage-full");
    let isOver = false;
    const appends = (async () => {
      while (!isOver) await append(other, busy, recordOf(bytesOf(2000)), busy.state.tail);
    })();
    assert.equal(await remove(one, doomed), "durable");
    isOver = true;
    await appends;
    assert.equal(await other.load("doomed"), null);
  });

  test("is spent, and the stream whole, where a front end ends before its tombstone", async (t) => {
    const cluster = new MemoryCluster();
    const dying = logOf(cluster);
    const one = open(t, cluster, dying);
    const doomed = await created(one, "doomed", "bytes");
    await reserveOf(cluster).fill(assert.ifError);
    cluster.maxBytes = cluster.bytes;
    const isDead = new Promise<void>((resolve) => {
      const { purge } = dying;
      dying.purge = async (...given) => {
        await purge.apply(dying, given);
        resolve();
        return new Promise(() => undefined); // it never goes on
      };
    });
    void remove(one, doomed);
    await isDead;
    assert.equal(held(cluster), RESERVED_MESSAGES - 1);
    const other = open(t, cluster);
    const seen = await loaded(other, "doomed");
    assert.deepEqual(await other.read(seen, 0, 100), Buffer.from("bytes"));
    assert.equal(await remove(other, seen), "durable");
    assert.equal(await other.load("doomed"), null);
  });
});
