import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Clock } from "../../../../src/ops/clock.js";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import { MessageCache } from "../../../../src/storage/nats/memory/message-cache.js";
import { StateReader } from "../../../../src/storage/nats/reading/state-reader.js";
import { Publisher, type Beginning } from "../../../../src/storage/nats/writing/publisher.js";
import { Reserve } from "../../../../src/storage/nats/writing/reserve.js";
import { append, created, loaded, readAll, recordOf, settled } from "../../../helpers/engine.js";
import { frontEnds, type FrontEnd, type FrontEnds } from "../../../helpers/front-ends.js";
import type { MemoryLog } from "../../../helpers/memory-log.js";
import { Random } from "../../../helpers/random.js";
import { trimBefore } from "../../../helpers/trim.js";
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
      assert.equal(await note(5000), "storage-full");
      cluster.maxBytes = Infinity;
      const { publish } = way;
      way.publish = () => Promise.resolve({ kind: "untaken" });
      const sinceMs = clock.nowMs();
      assert.equal(await note(6000), "overloaded");
      assert.ok(clock.nowMs() - sinceMs >= 30_000, "it is tried for as long as any change");
      way.publish = publish;
      assert.deepEqual([stream.state.touchedAtMs, (await loaded(other, "s")).state.touchedAtMs], [0, 0]);
      assert.equal(await note(7000), "durable");
      assert.deepEqual([stream.state.touchedAtMs, (await loaded(begin().storage, "s")).state.touchedAtMs], [7000, 7000]);
    });
  });

  test("takes nothing along that waits behind it where it fails", async () => {
    await withFrontEnds(async ({ cluster }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 5000), true);
      const noted = settled(storage, stream);
      const [appended, behind] = [append(storage, stream, "y", 1), settled(storage, stream)];
      await held.reached.opened;
      cluster.maxBytes = cluster.bytes;
      held.goesOn.open();
      assert.equal(await noted, "storage-full");
      cluster.maxBytes = Infinity;
      assert.deepEqual([await appended, await behind], ["durable", "durable"]);
    });
  });
});

describe("an append that is decided on what another server has written", () => {
  test("is taken while a read is being noted", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 5000), true);
      const noted = settled(storage, stream);
      await held.reached.opened;
      assert.equal(await append(other, await loaded(other, "s"), "y"), "durable");
      await storage.refresh(stream);
      const appended = [append(storage, stream, "z", 2), append(storage, stream, "!", 3)];
      held.goesOn.open();
      assert.deepEqual([await noted, ...(await Promise.all(appended))], ["durable", "durable", "durable"]);
      assert.equal(String(await readAll(other, await loaded(other, "s"))), "xyz!");
    });
  });

  test("is taken while a trim looks for where the stream is to begin, which that gives up", async () => {
    await withFrontEnds(async ({ clock, begin }, { storage, way }) => {
      const written = await created(storage, "s", "first ");
      for (const payload of ["second ", "third "]) assert.equal(await append(storage, written, payload), "durable");
      const { publisher, states } = publisherOn(way, clock);
      const stream = await states.load("s", () => null);
      assert.ok(stream !== null);
      const [looks, goesOn] = [new Barrier(), new Barrier()];
      const find = async (): Promise<Beginning> => {
        looks.open();
        await goesOn.opened;
        return { position: 6, atMs: 0 };
      };
      const trimmed = new Promise((settle) => publisher.trim(stream, find, settle));
      await looks.opened;
      trimBefore(storage, written, 13);
      await clock.pause(100);
      assert.equal(await append(storage, written, "fourth "), "durable");
      await states.refresh(stream);
      const appended = new Promise((settle) => {
        assert.equal(publisher.append(stream, recordOf("fifth"), 26, settle), null);
      });
      goesOn.open();
      assert.deepEqual([await trimmed, await appended], ["overloaded", "durable"]);
      const other = begin().storage;
      const seen = await loaded(other, "s");
      assert.equal(seen.earliest, 13, "a stream never begins before where it did");
      assert.equal(String(await readAll(other, seen)), "third fourth fifth");
    });
  });

  test("is not taken behind one that was decided before", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const theirs = await loaded(other, "s");
      for (const isSent of [false, true]) {
        const held = holdPublish(way);
        if (!isSent) assert.equal(storage.touch(stream, 5000), true);
        assert.equal(await append(other, theirs, "first "), "durable");
        if (!isSent) await storage.refresh(stream);
        const before = new Promise((settle) => {
          assert.equal(storage.append(stream, recordOf("mine"), stream.state.tail, settle), null);
        });
        await held.reached.opened;
        assert.equal(await append(other, theirs, "second "), "durable");
        await storage.refresh(stream);
        assert.equal(
          storage.append(stream, recordOf("behind"), stream.state.tail, () => assert.fail("it is not taken")),
          "tail-moved",
        );
        held.goesOn.open();
        assert.equal(await before, "tail-moved");
      }
    });
  });
});

/** A publisher that knows no stream yet. */
function publisherOn(log: MemoryLog, clock: Clock): { readonly publisher: Publisher; readonly states: StateReader } {
  const parts = { log, subjects: new Subjects("test", 2), clock, cache: new MessageCache(0) };
  const states = new StateReader(parts);
  const publisher = new Publisher({
    parts,
    states,
    reserve: new Reserve(parts),
    timeoutMs: 30_000,
    random: () => 0.5,
    maxQueuedBytes: 1000,
    onFault: (fault) => assert.fail(String(fault)),
    onLost: () => undefined,
    observer: null,
  });
  return { publisher, states };
}

/** Holds the next publish of a server until `goesOn` is opened. */
function holdPublish(way: MemoryLog): { readonly reached: Barrier; readonly goesOn: Barrier } {
  const { publish } = way;
  const held = { reached: new Barrier(), goesOn: new Barrier() };
  way.publish = async (...given) => {
    way.publish = publish;
    held.reached.open();
    await held.goesOn.opened;
    return publish.apply(way, given);
  };
  return held;
}

async function withFrontEnds(run: (all: FrontEnds, one: FrontEnd) => Promise<void>): Promise<void> {
  const all = frontEnds(1, new Random(1));
  const [one] = all.all;
  assert.ok(one !== undefined);
  try {
    await all.clock.through(run(all, one));
  } finally {
    await all.stop();
  }
}
