import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { append, created, loaded, settled } from "../../../helpers/engine.js";
import { frontEnds, type FrontEnd, type FrontEnds } from "../../../helpers/front-ends.js";
import type { MemoryLog } from "../../../helpers/memory-log.js";
import { Random } from "../../../helpers/random.js";
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
