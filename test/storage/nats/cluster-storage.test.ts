import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { ALL_NAMES, namesBeginningWith } from "../../../src/protocol/names/name-range.js";
import { systemClock } from "../../../src/ops/clock.js";
import { ClusterStorage } from "../../../src/storage/nats/cluster-storage.js";
import type { StoredStream } from "../../../src/storage/storage.js";
import { encodeEdge } from "../../../src/storage/nats/log/change.js";
import { Subjects } from "../../../src/storage/nats/log/subjects.js";
import type { StorageUnderTest } from "../../contract/storage-under-test.js";
import { storageContract } from "../../contract/storage.contract.js";
import {
  append,
  bytesOf,
  created,
  forked,
  keptLog,
  loaded,
  originAt,
  readAll,
  recordOf,
  remove,
  startCreate,
} from "../../helpers/engine.js";
import { frontEnds } from "../../helpers/front-ends.js";
import { Random } from "../../helpers/random.js";
import { trimBefore } from "../../helpers/trim.js";
import type { VirtualClock } from "../../helpers/virtual-clock.js";
import { Barrier } from "../../helpers/watched-files.js";
import { MemoryCluster, MemoryLog } from "../../helpers/memory-log.js";

storageContract("the cluster engine on a log in memory", open);

describe("two servers on one log", () => {
  test("any place of a long stream is found, by messages and by time", async () => {
    await withTwo(async (one, other) => {
      const stream = await created(one, "s");
      let tail = 0;
      for (let index = 0; index < 300; index += 1) {
        const payload = bytesOf(1 + (index % 7), index);
        const record = recordOf(payload, { atMs: 10 * index, messages: 1 + (index % 3) });
        assert.equal(await append(one, stream, record, tail), "durable");
        tail += payload.length;
      }
      const seen = await loaded(other, "s");
      const starts: { readonly at: number; readonly messages: number }[] = [];
      for (let index = 0, at = 0, messages = 0; index < 300; at += 1 + (index % 7), messages += 1 + (index % 3), index += 1)
        starts.push({ at, messages });
      const total = 600;
      for (const index of [0, 1, 7, 150, 151, 298, 299]) {
        const { at = 0, messages = 0 } = starts[index] ?? {};
        assert.deepEqual(await other.placeOfLast(seen, total - messages, () => null), { position: at, skip: 0 });
        assert.equal(await other.placeSince(seen, 10 * index), at);
        assert.deepEqual(await other.read(seen, at, 1), bytesOf(1 + (index % 7), index).subarray(0, 1));
      }
      assert.deepEqual(await other.placeOfLast(seen, total - 2, () => null), { position: 1, skip: 1 });
      assert.deepEqual(await other.placeOfLast(seen, total + 1, () => null), { position: 0, skip: 0 });
      assert.equal(await other.placeSince(seen, 2991), tail);
    });
  });

  test("who follows a stream reads an append as soon as it is told of it", async () => {
    await withTwo(async (one) => {
      const stream = await created(one, "s", "first");
      const reads: unknown[] = [];
      stream.observer = {
        advanced: (from) => reads.push(one.endOfRead(stream, from, 2), one.read(stream, from, 100)),
        settled: () => undefined,
        deleted: () => undefined,
      };
      assert.equal(await append(one, stream, "second", 5), "durable");
      const [end, bytes] = await Promise.all(reads);
      assert.deepEqual([end, String(bytes)], [11, "second"]);
    });
  });

  test("thousands of producers are known to the other one, in their order", async () => {
    await withTwo(async (one, other) => {
      const stream = await created(one, "s");
      const outcomes = Array.from({ length: 3000 }, (_, index) =>
        append(
          one,
          stream,
          recordOf("x", { producer: { id: `producer-${index % 2000}`, epoch: 0, seq: Math.floor(index / 2000) } }),
          index,
        ),
      );
      assert.deepEqual([...new Set(await Promise.all(outcomes))], ["durable"]);
      for (let index = 0; index < 150; index += 1)
        await append(one, stream, recordOf("y", { producer: { id: "late", epoch: 1, seq: index } }), 3000 + index);
      const { state } = await loaded(other, "s");
      assert.equal(state.tail, 3150);
      assert.deepEqual([...(state.producers ?? [])], [...(stream.state.producers ?? [])]);
      assert.equal(state.producers?.size, 2001);
    });
  });

  test("a state is read although its snapshot of producers goes meanwhile, as there is a newer one", async () => {
    await withTwo(async (one, other, clock, _cluster, [, way]) => {
      const stream = await created(one, "s");
      let appends = 0;
      const produce = async (count: number): Promise<void> => {
        for (const until = appends + count; appends < until; appends += 1) {
          const producer = { id: `producer-${appends % 40}`, epoch: 0, seq: Math.floor(appends / 40) };
          assert.equal(await append(one, stream, recordOf("x", { producer })), "durable");
        }
      };
      await produce(50);
      const seen = await loaded(other, "s");
      await produce(2);
      assert.ok(way !== undefined);
      const { next } = way;
      const [reached, goesOn] = [new Barrier(), new Barrier()];
      way.next = async (...given) => {
        way.next = next;
        reached.open();
        await goesOn.opened;
        return next.apply(way, given);
      };
      const refreshed = other.refresh(seen);
      await reached.opened;
      await produce(80);
      trimBefore(one, stream, stream.state.tail - 1);
      await clock.pause(100);
      goesOn.open();
      await refreshed;
      assert.equal(seen.state.tail, 132);
      assert.deepEqual([...(seen.state.producers ?? [])], [...(stream.state.producers ?? [])]);
    });
  });

  test("a source keeps its bytes while a fork that the other one made needs them", async () => {
    await withTwo(async (one, other, clock, cluster) => {
      const source = await created(one, "source", "shared bytes");
      const fork = await forked(other, await loaded(other, "source"), "fork", 6, "own");
      assert.equal(await remove(one, source), "durable");
      assert.equal(source.standing, "kept");
      assert.equal((await one.load("source"))?.standing, "kept");
      assert.equal((await readAll(one, await loaded(one, "fork"))).toString(), "sharedown");
      assert.equal(await startCreate(one, "source").outcome.catch((fault: unknown) => fault instanceof RangeError), true);
      assert.equal(await remove(other, fork), "durable");
      // What follows a deletion goes on behind its answer.
      await clock.pause(100);
      assert.equal(await one.load("source"), null);
      assert.deepEqual(
        [...cluster.subjects].map(([subject, messages]) => [subject.split(".").at(-1), messages.length]).sort(),
        [
          ["fork", 1],
          ["source", 1],
        ],
        "of both only the tombstones are left",
      );
      assert.equal(await startCreate(one, "source").outcome, "durable");
    });
  });

  test("a fork that is looked up while it and its source are deleted is there or gone, and never damaged", async () => {
    await withTwo(async (one, other) => {
      let found = 0;
      for (let round = 0; round < 100; round += 1) {
        const source = await created(one, `source ${round}`, "shared");
        const fork = await forked(one, source, `fork ${round}`, 6, "own");
        const removed = Promise.all([remove(one, source), remove(one, fork)]);
        for (let stream = await other.load(fork.name); stream !== null; stream = await other.load(fork.name)) {
          found += 1;
          other.release(stream);
        }
        assert.deepEqual(await removed, ["durable", "durable"]);
      }
      assert.ok(found > 0);
    });
  });

  test("a fork of a source that the other one has deleted is not made", async () => {
    await withTwo(async (one, other) => {
      const seen = await loaded(other, (await created(one, "source", "bytes")).name);
      assert.equal(await remove(one, await loaded(one, "source")), "durable");
      const { outcome } = startCreate(other, "fork", "", { forkedFrom: originAt(seen, 3) });
      assert.equal(await outcome, "tail-moved");
      assert.equal(await other.load("fork"), null);
      assert.equal(await one.load("source"), null);
    });
  });

  test("a fork that was never made holds its source for ten minutes, and no longer", async () => {
    await withTwo(async (one, other, clock, cluster, [way]) => {
      const source = await created(one, "source", "bytes");
      const edge = encodeEdge({ source: "source", id: source.id, fork: "lost", forkId: "f1", atMs: clock.nowMs() });
      const subjects = new Subjects("test", 2);
      await way?.publish(subjects.ofEdge("source", source.id, "f1"), edge, Buffer.alloc(0), 0);
      const fork = await forked(other, await loaded(other, "source"), "fork", 3, "own");
      assert.equal(await remove(one, source), "durable");
      await clock.pause(9 * 60_000);
      await listedNames(one);
      assert.equal(edgesIn(cluster), 2);
      await clock.pause(2 * 60_000);
      assert.deepEqual(await listedNames(one), ["fork"]);
      assert.equal(edgesIn(cluster), 1, "that of the fork which lives stays");
      assert.equal((await readAll(one, await loaded(one, "fork"))).toString(), "bytown");
      assert.equal(await remove(other, fork), "durable");
      await clock.pause(100);
      assert.equal(edgesIn(cluster), 0);
      assert.equal(await one.load("source"), null);
    });
  });

  test("one of them sweeps: the other does when that has ended, or given up", async () => {
    await withTwo(async (one, other, clock) => {
      await created(one, "s");
      assert.deepEqual(await listedNames(one), ["s"]);
      assert.deepEqual(await listedNames(other), []);
      await clock.pause(60_000);
      assert.deepEqual(await listedNames(one), ["s"], "whoever sweeps goes on");
      await clock.pause(60_000);
      assert.deepEqual(await listedNames(other), []);
      await clock.pause(31_000);
      assert.deepEqual(await listedNames(other), ["s"]);
      assert.deepEqual(await listedNames(one), []);
      await other.close();
      assert.deepEqual(await listedNames(one), ["s"]);
    });
  });

  test("a stream that nobody was told of is in the list ten minutes later", async () => {
    await withTwo(async (one, other, clock, cluster) => {
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), []);
      cluster.listeners.clear();
      await created(one, "s");
      await clock.pause(9 * 60_000);
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), []);
      await clock.pause(2 * 60_000);
      // The old names are given while they are read again.
      await other.streamList.names(ALL_NAMES, 10);
      await clock.pause(100);
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), ["s"]);
    });
  });

  test("streams that both write are followed as long as both do, and no longer", async () => {
    await withTwo(async (one, other, clock, cluster) => {
      const ours = await created(one, "s");
      const theirs = await loaded(other, "s");
      let tail = 0;
      /** Decides again where another was first, as the layer above does. */
      const appended = async (storage: ClusterStorage, stream: StoredStream): Promise<void> => {
        while ((await append(storage, stream, "x", stream.state.tail)) === "tail-moved") await storage.refresh(stream);
        tail += 1;
      };
      await appended(one, ours);
      await appended(other, theirs);
      await appended(one, ours);
      await clock.pause(100);
      const refused = cluster.refused;
      for (let round = 0; round < 15; round += 1) {
        await clock.pause(1000);
        await appended(other, theirs);
        await clock.pause(1000);
        await appended(one, ours);
      }
      assert.equal(cluster.refused, refused, "each knows of the other's");
      await clock.pause(100);
      assert.equal(theirs.state.tail, tail);
      assert.equal(cluster.watchers.size, 2);
      for (let round = 0; round < 60; round += 1) {
        await clock.pause(1000);
        await appended(one, ours);
      }
      assert.equal(cluster.watchers.size, 0, "one that writes alone follows nothing, nor does one that no longer writes");
    });
  });

  test("what the other one writes is kept for who follows it, and else read from the log", async () => {
    await withTwo(async (one, other, clock) => {
      const ours = await created(one, "s");
      const theirs = await loaded(other, "s");
      assert.equal(await append(one, ours, "1", 0), "durable");
      assert.equal(await append(other, theirs, "2", 0), "tail-moved", "from now on it hears what the other one writes");
      assert.equal(await append(one, ours, "2", 1), "durable");
      await clock.pause(100);
      assert.equal(theirs.state.tail, 2);
      assert.equal(other.figures().cacheBytes, 0);
      assert.equal(String(await readAll(other, theirs)), "12");
      theirs.observer = { advanced: () => undefined, settled: () => undefined, deleted: () => undefined };
      assert.equal(await append(one, ours, "3", 2), "durable");
      await clock.pause(100);
      assert.ok(other.figures().cacheBytes > 0);
      assert.equal(String(await readAll(other, theirs)), "123");
    });
  });

  test("each lists what the other has made and deleted, and tells of it", async () => {
    await withTwo(async (one, other, clock) => {
      const told: string[] = [];
      other.streamList.events.on("created", ({ name }) => told.push(`created ${name}`));
      other.streamList.events.on("closed", ({ name }) => told.push(`closed ${name}`));
      other.streamList.events.on("deleted", (name) => told.push(`deleted ${name}`));
      const first = await created(one, "b");
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), ["b"]);
      await created(one, "a");
      await append(one, first, recordOf("", { closes: true }), 0);
      await clock.pause(20);
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), ["a", "b"]);
      const matching = await other.streamList.matching(["b*"]);
      assert.deepEqual(matching?.slice({ range: namesBeginningWith("b"), pattern: "b*" }, ALL_NAMES, 10), ["b"]);
      assert.equal((await other.streamList.look("b"))?.state.closed, true);
      await remove(one, first);
      await clock.pause(20);
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), ["a"]);
      assert.deepEqual(matching?.slice({ range: namesBeginningWith("b"), pattern: "b*" }, ALL_NAMES, 10), []);
      assert.equal(await other.streamList.look("b"), null);
      assert.deepEqual(told, ["created b", "created a", "closed b", "deleted b"]);
    });
  });

  test("a deletion that is told late takes nothing from a list that has the name again", async () => {
    await withTwo(async (one, other, clock, cluster) => {
      const [announced, told]: [string[], string[]] = [[], []];
      cluster.listeners.add((text) => announced.push(text));
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), []);
      await remove(one, await created(one, "s"));
      await clock.pause(20);
      const late = announced.find((text) => text.includes("deleted"));
      assert.ok(late !== undefined);
      assert.equal(await other.load("s"), null);
      await created(other, "s");
      await clock.pause(20);
      other.streamList.events.on("deleted", (name) => told.push(name));
      await other.streamList.heard(late);
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), ["s"]);
      assert.deepEqual(told, []);
      await other.streamList.heard('{"kind":"deleted","name":"s"}');
      assert.deepEqual(await other.streamList.names(ALL_NAMES, 10), [], "a server of a version before tells no more than that");
      assert.deepEqual(told, ["s"]);
    });
  });

  test("a tombstone goes after ten minutes, and not before", async () => {
    await withTwo(async (one, other, clock, cluster) => {
      await remove(one, await created(one, "s", "x"));
      await clock.pause(9 * 60_000);
      for await (const listed of other.list()) assert.fail(listed.name);
      assert.equal(streamSubjects(cluster), 1);
      await clock.pause(2 * 60_000);
      for await (const listed of other.list()) assert.fail(listed.name);
      assert.equal(streamSubjects(cluster), 0);
      assert.equal(await startCreate(one, "s").outcome, "durable");
    });
  });
});

async function listedNames(storage: ClusterStorage): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of storage.list()) names.push(name);
  return names.sort();
}

function edgesIn({ subjects }: MemoryCluster): number {
  return [...subjects.keys()].filter((subject) => subject.includes(".f.")).length;
}

function streamSubjects({ subjects }: MemoryCluster): number {
  return [...subjects.keys()].filter((subject) => subject.includes(".s.")).length;
}

type OfTwo = (
  one: ClusterStorage,
  other: ClusterStorage,
  clock: VirtualClock,
  cluster: MemoryCluster,
  ways: readonly MemoryLog[],
) => Promise<void>;

/** Runs a test on the engines of two servers, in the time of their clock. */
async function withTwo(run: OfTwo): Promise<void> {
  const { all, clock, cluster, stop } = frontEnds(2, new Random(1));
  const [one, other] = all;
  assert.ok(one !== undefined && other !== undefined);
  try {
    await clock.through(run(one.storage, other.storage, clock, cluster, [one.way, other.way]));
  } finally {
    await stop();
  }
}

function open(t: TestContext): Promise<StorageUnderTest> {
  const cluster = new MemoryCluster();
  const begin = (): ClusterStorage => {
    const clock = systemClock();
    const log = new MemoryLog(cluster, { ...clock, after: (_, run) => (setImmediate(run), { cancel: () => undefined }) }, Math.random);
    const subjects = new Subjects("test", 2);
    const storage = new ClusterStorage({ log, subjects, clock, notices: keptLog().log, cacheBytes: 64 * 1024, timeoutMs: 30_000 });
    t.after(() => storage.close());
    return storage;
  };
  return Promise.resolve({ isShared: true, storage: begin(), restart: () => Promise.resolve(begin()) });
}
