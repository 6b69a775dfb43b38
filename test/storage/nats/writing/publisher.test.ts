import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Clock } from "../../../../src/ops/clock.js";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import type { ClusterStream } from "../../../../src/storage/nats/memory/cluster-stream.js";
import { MessageCache } from "../../../../src/storage/nats/memory/message-cache.js";
import { StateReader } from "../../../../src/storage/nats/reading/state-reader.js";
import { Publisher, type Beginning } from "../../../../src/storage/nats/writing/publisher.js";
import { Reserve } from "../../../../src/storage/nats/writing/reserve.js";
import { append, created, loaded, readAll, recordOf } from "../../../helpers/engine.js";
import { withFrontEnds } from "../../../helpers/front-ends.js";
import type { MemoryLog } from "../../../helpers/memory-log.js";
import { trimBefore } from "../../../helpers/trim.js";
import { Barrier } from "../../../helpers/watched-files.js";

describe("an append that is decided on what another server has written", () => {
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
    await withFrontEnds(async ({ clock, begin }, { storage, way }) => {
      await created(storage, "s", "x");
      const other = begin().storage;
      const theirs = await loaded(other, "s");
      const { publisher, states } = publisherOn(way, clock);
      const stream = await states.load("s", () => null);
      assert.ok(stream !== null);
      for (const isSent of [false, true]) {
        const held = isSent ? holdPublish(way) : holdTrim(publisher, stream);
        assert.equal(await append(other, theirs, "first "), "durable");
        if (!isSent) await states.refresh(stream);
        const before = new Promise((settle) => {
          assert.equal(publisher.append(stream, recordOf("mine"), stream.state.tail, settle), null);
        });
        await held.reached.opened;
        assert.equal(await append(other, theirs, "second "), "durable");
        await states.refresh(stream);
        assert.equal(
          publisher.append(stream, recordOf("behind"), stream.state.tail, () => assert.fail("it is not taken")),
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
    stopwatchMs: () => clock.nowMs(),
    timeoutMs: 30_000,
    random: () => 0.5,
    maxQueuedBytes: 1000,
    onFault: (fault) => assert.fail(String(fault)),
    onLost: () => undefined,
    observer: null,
  });
  return { publisher, states };
}

/** What is held until `goesOn` is opened. */
interface Held {
  readonly reached: Barrier;
  readonly goesOn: Barrier;
}

/** Has what a stream is to change wait behind a trim, which finds nothing. */
function holdTrim(publisher: Publisher, stream: ClusterStream): Held {
  const held = { reached: new Barrier(), goesOn: new Barrier() };
  const find = async (): Promise<null> => {
    held.reached.open();
    await held.goesOn.opened;
    return null;
  };
  publisher.trim(stream, find, () => undefined);
  return held;
}

/** Holds the next publish of a server until `goesOn` is opened. */
function holdPublish(way: MemoryLog): Held {
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
