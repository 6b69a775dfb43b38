import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ALL_NAMES } from "../../../src/protocol/names/name-range.js";
import { NoMajorityError } from "../../../src/storage/storage.js";
import { LogUnavailableError } from "../../../src/storage/nats/log/replicated-log.js";
import { created, remove } from "../../helpers/engine.js";
import { frontEnds, type FrontEnd } from "../../helpers/front-ends.js";
import { Random } from "../../helpers/random.js";
import type { VirtualClock } from "../../helpers/virtual-clock.js";
import { Barrier } from "../../helpers/watched-files.js";

describe("whoever goes by what a front end hears of streams", () => {
  test("is told that it may have missed something once it hears again", async () => {
    await withTwo(async (one, other, clock, told) => {
      assert.deepEqual(await other.storage.streamList.names(ALL_NAMES, 10), []);
      other.way.cut();
      await created(one.storage, "s");
      await clock.pause(5000);
      assert.deepEqual(told, []);
      other.way.heal();
      assert.deepEqual(told, ["missed"]);
      assert.deepEqual(await other.storage.streamList.names(ALL_NAMES, 10), ["s"]);
    });
  });

  test("finds what was announced in a gap that ended while the names were read", async () => {
    await withTwo(async (one, other, clock) => {
      const { way } = other;
      const { streamList } = other.storage;
      await created(one.storage, "early");
      const heads = way.heads.bind(way);
      const gate = new Barrier();
      way.heads = async function* (of) {
        way.heads = heads;
        yield* heads(of);
        await gate.opened;
      };
      const reading = streamList.names(ALL_NAMES, 10);
      await clock.pause(1000);
      way.cut();
      await created(one.storage, "late");
      await clock.pause(1000);
      way.heal();
      const readAgain = streamList.names(ALL_NAMES, 10);
      gate.open();
      for (const names of [reading, readAgain, streamList.names(ALL_NAMES, 10)]) assert.deepEqual(await names, ["early", "late"]);
    });
  });

  test("is told so where nobody can say what has become of the stream", async () => {
    await withTwo(async (one, other, clock, told) => {
      const { last } = other.way;
      other.way.last = () => Promise.reject(new LogUnavailableError("there is no leader", ""));
      other.way.untilLed = () => Promise.resolve(false);
      await created(one.storage, "lost");
      await clock.pause(100);
      assert.deepEqual(told, ["missed"]);
      other.way.last = last;
      await created(one.storage, "s");
      await clock.pause(100);
      assert.deepEqual(told, ["missed", "created s"]);
    });
  });

  test("is refused a stream or a list, which it may ask for again, while there is no majority", async () => {
    await withTwo(async (_one, { storage, way }) => {
      way.last = () => Promise.reject(new LogUnavailableError("there is no leader", ""));
      way.heads = () => {
        throw new LogUnavailableError("there is no leader", "");
      };
      way.untilLed = () => Promise.resolve(false);
      await assert.rejects(async () => storage.load("s"), NoMajorityError);
      await assert.rejects(async () => storage.streamList.names(ALL_NAMES, 10), NoMajorityError);
    });
  });

  test("is told of what becomes of a stream in order, however long it takes to look at it", async () => {
    await withTwo(async (one, other, clock, told) => {
      const { last } = other.way;
      let go: () => void = () => assert.fail("nobody looks");
      const gate = new Promise<void>((resolve) => (go = resolve));
      other.way.last = async (...of) => {
        const message = await last.call(other.way, ...of);
        await gate;
        return message;
      };
      const stream = await created(one.storage, "s");
      await clock.pause(100);
      await remove(one.storage, stream);
      await clock.pause(100);
      go();
      await clock.pause(100);
      assert.deepEqual(told, ["created s", "deleted s"]);
      other.way.last = last;
      await created(one.storage, "s");
      await clock.pause(100);
      assert.deepEqual(told, ["created s", "deleted s", "created s"]);
    });
  });
});

type OfTwo = (one: FrontEnd, other: FrontEnd, clock: VirtualClock, told: readonly string[]) => Promise<void>;

/** Runs a test with two front ends, and what is told at the second. */
async function withTwo(run: OfTwo): Promise<void> {
  const { all, clock, stop } = frontEnds(2, new Random(1));
  const [one, other] = all;
  assert.ok(one !== undefined && other !== undefined);
  const told: string[] = [];
  other.storage.streamList.events
    .on("created", ({ name }) => told.push(`created ${name}`))
    .on("deleted", (name) => told.push(`deleted ${name}`))
    .on("missed", () => told.push("missed"));
  await clock.through(run(one, other, clock, told)).finally(stop);
}
