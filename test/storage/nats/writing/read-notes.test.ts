import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { append, created, loaded, readAll, settled } from "../../../helpers/engine.js";
import { withFrontEnds } from "../../../helpers/front-ends.js";
import type { MemoryLog } from "../../../helpers/memory-log.js";
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

  test("takes nothing along where it fails", async () => {
    await withFrontEnds(async ({ cluster }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 5000), true);
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
      const reads = [5000, 6000, 8000, 7000].map((atMs) => {
        assert.equal(storage.touch(stream, atMs), true);
        return settled(storage, stream);
      });
      await held.reached.opened;
      assert.equal(storage.release(stream), false, "its notes would be lost");
      held.goesOn.open();
      assert.deepEqual(await Promise.all(reads), ["durable", "durable", "durable", "durable"]);
      assert.deepEqual(noted, ["5000", "8000"]);
      assert.equal(stream.state.touchedAtMs, 8000);
      assert.equal((await loaded(begin().storage, "s")).state.touchedAtMs, 8000);
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
      assert.equal(storage.touch(stream, 5000), true);
      const noted = settled(storage, stream).then(() => (isNoted = true));
      await held.reached.opened;
      assert.equal(await settled(storage, stream), "durable");
      assert.equal(isNoted, false);
      held.goesOn.open();
      await noted;
      assert.equal(storage.touch(stream, 6000), true);
      await clock.pause(100);
      assert.equal(stream.state.touchedAtMs, 6000);
      assert.equal(await settled(storage, stream), "durable", "it is over, though nobody has asked");
    });
  });

  test("does not stand in the way of an append that is decided on what another server has written", async () => {
    await withFrontEnds(async ({ begin }, { storage, way }) => {
      const stream = await created(storage, "s", "x", TTL);
      const other = begin().storage;
      const held = holdPublish(way);
      assert.equal(storage.touch(stream, 5000), true);
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

/** Holds the next publish of a server until `goesOn` is opened; tells `onNote` of the body of each note. */
function holdPublish(way: MemoryLog, onNote = (_body: string): unknown => undefined): Record<"reached" | "goesOn", Barrier> {
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
