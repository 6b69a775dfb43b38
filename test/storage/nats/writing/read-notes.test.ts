import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Published } from "../../../../src/storage/nats/log/replicated-log.js";
import type { StreamConfig } from "../../../../src/storage/storage.js";
import { Stream } from "../../../../src/stream/loaded/stream.js";
import { LINGERING_MS } from "../../../../src/storage/nats/log/sequence-ages.js";
import { append, created, forked, loaded, readAll, remove, settled } from "../../../helpers/engine.js";
import { withFrontEnds, type FrontEnd } from "../../../helpers/front-ends.js";
import type { MemoryCluster, MemoryLog } from "../../../helpers/memory-log.js";
import { createOf, find, gist } from "../../../helpers/registries.js";
import { Barrier } from "../../../helpers/watched-files.js";

const TTL = { ttlSeconds: 60 };

describe("the note of a read", () => {
  test("counts only where it is stored, and is taken then", async () => {
    await withFrontEnds(async ({ clock, cluster, begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const note = (atMs: number): Promise<unknown> => {
        assert.equal(storage.touch(stream, atMs), true);
        return settled(storage, stream);
      };
      cluster.maxBytes = cluster.bytes;
      assert.equal(await note(1_005_000), "storage-full");
      cluster.maxBytes = Infinity;
      const { publish } = way;
      way.publish = () => Promise.resolve({ kind: "untaken" });
      const sinceMs = clock.nowMs();
      assert.equal(await note(1_006_000), "overloaded");
      assert.ok(clock.nowMs() - sinceMs >= 30_000, "it is tried for as long as any change");
      way.publish = publish;
      assert.deepEqual([stream.state.touchedAtMs, (await loaded(other, "s")).state.touchedAtMs], [0, 0]);
      assert.equal(await note(1_007_000), "durable");
      assert.deepEqual([stream.state.touchedAtMs, (await loaded(begin().storage, "s")).state.touchedAtMs], [1_007_000, 1_007_000]);
    });
  });

  test("takes nothing along where it fails", async () => {
    await withFrontEnds(async ({ cluster }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 1_005_000), true);
      const noted = settled(storage, stream);
      const [appended, behind] = [append(storage, stream, "y", 1), settled(storage, stream)];
      assert.deepEqual([await appended, await behind], ["durable", "durable"]);
      cluster.maxBytes = cluster.bytes;
      held.goesOn.open();
      assert.equal(await noted, "storage-full");
      assert.equal(stream.state.touchedAtMs, 0);
    });
  });

  test("is part of the next one while another is on its way", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const noted: string[] = [];
      const held = holdPublish(way, (body) => noted.push(body));
      const reads = [1_005_000, 1_006_000, 1_008_000, 1_007_000].map((atMs) => {
        assert.equal(storage.touch(stream, atMs), true);
        return settled(storage, stream);
      });
      await held.reached.opened;
      assert.equal(storage.release(stream), false, "its notes would be lost");
      held.goesOn.open();
      assert.deepEqual(await Promise.all(reads), ["durable", "durable", "durable", "durable"]);
      assert.deepEqual(noted, ["1005000", "1008000"]);
      assert.equal(stream.state.touchedAtMs, 1_008_000);
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, 1_008_000);
      assert.equal(storage.release(stream), true);
    });
  });

  test("that nobody takes keeps no append waiting, and no read for longer than one note is tried", async () => {
    await withFrontEnds(async ({ clock }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const { publish } = way;
      way.publish = (subject, ...message) =>
        subject.startsWith("sdt.") ? Promise.resolve({ kind: "untaken" }) : publish.call(way, subject, ...message);
      const read = async (): Promise<number> => {
        const sinceMs = clock.nowMs();
        assert.equal(storage.touch(stream, sinceMs), true);
        assert.equal(await settled(storage, stream), "overloaded");
        return clock.nowMs() - sinceMs;
      };
      const waits: Promise<number>[] = [];
      for (let index = 0; index < 180; index += 1) {
        waits.push(read());
        const sentAtMs = clock.nowMs();
        assert.equal(await append(storage, stream, "y"), "durable");
        assert.ok(clock.nowMs() - sentAtMs < 10, `append ${index} waited`);
        await clock.pause(500);
      }
      const longestMs = Math.max(...(await Promise.all(waits)));
      assert.ok(longestMs >= 30_000 && longestMs < 31_000, `a read waited for ${longestMs} ms`);
    });
  });

  test("is waited for by who asks directly behind it, and by nobody else", async () => {
    await withFrontEnds(async ({ clock }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const held = holdPublish(way);
      let isNoted = false;
      assert.equal(storage.touch(stream, 1_005_000), true);
      const noted = settled(storage, stream).then(() => (isNoted = true));
      await held.reached.opened;
      assert.equal(await settled(storage, stream), "durable");
      assert.equal(isNoted, false);
      held.goesOn.open();
      await noted;
      assert.equal(storage.touch(stream, 1_006_000), true);
      await clock.pause(100);
      assert.equal(stream.state.touchedAtMs, 1_006_000);
      assert.equal(await settled(storage, stream), "durable", "it is over, though nobody has asked");
    });
  });

  test("does not stand in the way of an append that is decided on what another server has written", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 1_005_000), true);
      const noted = settled(storage, stream);
      await held.reached.opened;
      assert.equal(await append(other, await loaded(other, "s"), "y"), "durable");
      await storage.refresh(stream);
      assert.deepEqual(await Promise.all([append(storage, stream, "z", 2), append(storage, stream, "!", 3)]), ["durable", "durable"]);
      held.goesOn.open();
      assert.equal(await noted, "durable");
      assert.equal(String(await readAll(other, await loaded(other, "s"))), "xyz!");
    });
  });
});

describe("the note of a read that is stored late", () => {
  const later = 1_013_000;
  for (const [why, spoil] of [
    ["an answer is lost", loseAnswer],
    ["nobody takes it at first", loseNote],
  ] as const)
    test(`undoes no later one of another server: ${why}`, async () => {
      await withFrontEnds(async ({ clock, begin }, { storage, way }) => {
        const stream = await created(storage, "s", "x", TTL);
        const other = begin().storage;
        const theirs = await loaded(other, "s");
        const lost = spoil(way);
        assert.equal(storage.touch(stream, 1_005_000), true);
        const noted = settled(storage, stream);
        await lost.reached.opened;
        assert.equal(other.touch(theirs, later), true);
        assert.equal(await settled(other, theirs), "durable");
        lost.goesOn.open();
        assert.equal(await noted, "durable");
        await clock.pause(100);
        assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, later);
      });
    });

  test("undoes no later one where it had to wait for the one before", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const theirs = await loaded(other, "s");
      const first = spoilNext(way, (publish) => publish());
      for (const atMs of [1_005_000, 1_006_000]) assert.equal(storage.touch(stream, atMs), true);
      const both = settled(storage, stream);
      await first.reached.opened;
      assert.equal(other.touch(theirs, later), true);
      assert.equal(await settled(other, theirs), "durable");
      first.goesOn.open();
      assert.equal(await both, "durable");
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, later);
    });
  });

  test("undoes no later one where it is of a read that was long ago, as whoever evicts the stream notes it", async () => {
    await withFrontEnds(async ({ clock, begin }, one) => {
      const { registry, way } = one;
      registry.start();
      assert.equal(gist(await registry.create("s", createOf({ text: "x", ttlSeconds: 100 }))), "created");
      await clock.pause(10_000);
      const slow = holdPublish(way);
      const reading = readIn(one);
      await clock.pause(3000);
      slow.goesOn.open();
      await reading;
      const other = begin();
      await clock.pause(30_000);
      const atMs = clock.nowMs();
      await readIn(other);
      await clock.pause(60_000);
      assert.equal(registry.loadedCount, 0);
      const { touchedAtMs } = (await loaded(begin().storage, "s")).state;
      assert.ok(touchedAtMs >= atMs, `it is noted to be read ${atMs - touchedAtMs} ms earlier`);
      await clock.pause(atMs + 99_000 - clock.nowMs());
      assert.ok((await begin().registry.find("s")) instanceof Stream, "its time is not over");
    });
  });

  test("undoes none of the stream that has the name since, and replaces one of a stream before", async () => {
    await withFrontEnds(async ({ cluster, begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      cluster.store(touchOf(), "a stream before", Buffer.from("1099000"), null);
      const lost = loseNote(way);
      assert.equal(storage.touch(stream, 1_005_000), true);
      const noted = settled(storage, stream);
      await lost.reached.opened;
      lost.goesOn.open();
      assert.equal(await noted, "durable");
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, 1_005_000);

      const lostAgain = loseNote(way);
      assert.equal(storage.touch(stream, 1_006_000), true);
      const notedAgain = settled(storage, stream);
      await lostAgain.reached.opened;
      const other = begin().storage;
      assert.equal(await remove(other, await loaded(other, "s")), "durable");
      const theirs = await created(other, "s", "new", TTL);
      assert.equal(other.touch(theirs, later), true);
      assert.equal(await settled(other, theirs), "durable");
      lostAgain.goesOn.open();
      assert.equal(await notedAgain, "durable");
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, later);
    });
  });
});

test("the note of a read is given up, and logged, where the stream's last message is of another version", async () => {
  await withFrontEnds(async ({ clock, cluster }, { storage, way, log }) => {
    const stream = await created(storage, "s", "x", TTL);
    cluster.store(touchOf(), "a stream before", Buffer.from("1099000"), null);
    for (const subject of [...cluster.subjects.keys()])
      if (subject.includes(".s.")) cluster.store(subject, '{"v":2}', Buffer.alloc(0), null);
    const lost = loseNote(way);
    lost.goesOn.open();
    assert.equal(storage.touch(stream, 1_005_000), true);
    assert.equal(await settled(storage, stream), "overloaded");
    await clock.pause(100);
    const [line] = log;
    assert.deepEqual([log.length, line?.level], [1, "error"]);
    assert.match(String(line?.fields["fault"]), /is of version 2/);
    assert.equal(storage.release(stream), true, "no note is on its way");
  });
});

describe("the note of a deleted stream", () => {
  test("is dropped with its bytes", async () => {
    await withFrontEnds(async (all, one) => {
      const stream = await read(one, "s", TTL);
      assert.equal(notesIn(all.cluster), 1);
      assert.equal(await remove(one.storage, stream), "durable");
      await all.clock.pause(100);
      assert.equal(notesIn(all.cluster), 0);
    });
  });

  test("is dropped when the last fork of the stream is", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await read(one, "source", TTL);
      const fork = await forked(one.storage, source, "fork", 1);
      assert.equal(await remove(one.storage, source), "durable");
      assert.equal(await remove(one.storage, fork), "durable");
      await all.clock.pause(100);
      assert.equal(notesIn(all.cluster), 0);
    });
  });

  test("is dropped by a sweep where the server ended before, or where it came late", async () => {
    await withFrontEnds(async ({ clock, cluster, begin }, one) => {
      const stream = await read(one, "s", TTL);
      assert.equal(await remove(one.storage, stream), "durable");
      await clock.pause(100);
      cluster.store(touchOf(), stream.id, Buffer.from("1006000"), null);
      await clock.pause(LINGERING_MS);
      for await (const { name } of begin().storage.list()) assert.fail(name);
      assert.equal(cluster.subjects.size, RESERVES + 1, "the reserves and the lease of the sweep");
    });
  });

  test("leaves that of the stream that has the name since", async () => {
    await withFrontEnds(async ({ clock, begin }, one) => {
      const { storage, way } = one;
      const stream = await read(one, "s", TTL);
      const [reached, goesOn] = [new Barrier(), new Barrier()];
      const { purge } = way;
      way.purge = async (...given) => {
        if (given[0].startsWith("sdt.")) {
          reached.open();
          await goesOn.opened;
        }
        return purge.apply(way, given);
      };
      assert.equal(await remove(storage, stream), "durable");
      await reached.opened;
      const other = begin();
      await read(other, "s", TTL);
      goesOn.open();
      await clock.pause(100);
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, 1_005_000);
    });
  });

  test("is not asked for where the stream had no time to live", async () => {
    await withFrontEnds(async ({ clock }, { storage, way }) => {
      const stream = await created(storage, "s", "x");
      const { last } = way;
      way.last = (subject) => {
        assert.ok(!subject.startsWith("sdt."));
        return last.call(way, subject);
      };
      assert.equal(await remove(storage, stream), "durable");
      await clock.pause(100);
    });
  });
});

/** Each of the two shards has one. */
const RESERVES = 2;

function touchOf(): string {
  return "sdt.test.s";
}

function notesIn({ subjects }: MemoryCluster): number {
  return [...subjects.keys()].filter((subject) => subject.startsWith("sdt.")).length;
}

/** Reads a stream as a request does. */
async function readIn({ registry }: FrontEnd): Promise<void> {
  await (await find(registry, "s")).touch();
}

/** A new stream that was read. */
async function read({ storage }: FrontEnd, name: string, config: Partial<StreamConfig>): ReturnType<typeof created> {
  const stream = await created(storage, name, "x", config);
  assert.equal(storage.touch(stream, 1_005_000), true);
  assert.equal(await settled(storage, stream), "durable");
  return stream;
}

/** Stores the next note, and loses the answer once `goesOn` is opened. */
function loseAnswer(way: MemoryLog): Held {
  return spoilNext(way, async (publish) => {
    await publish();
    return { kind: "unknown" };
  });
}

/** Loses the next note. */
function loseNote(way: MemoryLog): Held {
  return spoilNext(way, () => Promise.resolve({ kind: "untaken" }));
}

function spoilNext(way: MemoryLog, spoilt: (publish: () => Promise<Published>) => Promise<Published>): Held {
  const { publish } = way;
  const held = { reached: new Barrier(), goesOn: new Barrier() };
  way.publish = async (...given) => {
    way.publish = publish;
    const published = await spoilt(() => publish.apply(way, given));
    held.reached.open();
    await held.goesOn.opened;
    return published;
  };
  return held;
}

/** What is held until `goesOn` is opened. */
interface Held {
  readonly reached: Barrier;
  readonly goesOn: Barrier;
}

/** Holds the next publish of a server until `goesOn` is opened; tells `onNote` of the body of each note. */
function holdPublish(way: MemoryLog, onNote = (_body: string): unknown => undefined): Held {
  const { publish } = way;
  const held = { reached: new Barrier(), goesOn: new Barrier() };
  let isHeld = true;
  way.publish = async (subject, head, body, expected) => {
    if (subject.startsWith("sdt.")) onNote(String(body));
    held.reached.open();
    if (isHeld) {
      isHeld = false;
      await held.goesOn.opened;
    }
    return publish.call(way, subject, head, body, expected);
  };
  return held;
}
