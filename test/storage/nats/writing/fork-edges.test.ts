import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LINGERING_MS } from "../../../../src/storage/nats/log/sequence-ages.js";
import { LogUnavailableError } from "../../../../src/storage/nats/log/replicated-log.js";
import { append, created, forked, loaded, readAll, remove } from "../../../helpers/engine.js";
import { withFrontEnds, type FrontEnd, type FrontEnds } from "../../../helpers/front-ends.js";
import { trimBefore } from "../../../helpers/trim.js";
import { Barrier } from "../../../helpers/watched-files.js";

async function sweep({ storage }: Pick<FrontEnd, "storage">): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of storage.list()) names.push(name);
  return names.sort();
}

function edgesIn({ cluster }: FrontEnds): number {
  return [...cluster.subjects.keys()].filter((subject) => subject.includes(".f.")).length;
}

describe("the edge of a fork", () => {
  test("is no matter of clocks: one that is ahead drops nothing of a fork that is on its way", async () => {
    await withFrontEnds(async (all, { storage: one, way }) => {
      const source = await created(one, "source", "shared bytes");
      const [reached, goesOn] = [new Barrier(), new Barrier()];
      const publish = way.publish.bind(way);
      way.publish = async (subject, ...given) => {
        if (subject.includes(".s.")) {
          reached.open();
          await goesOn.opened;
        }
        return publish(subject, ...given);
      };
      const fork = forked(one, source, "fork", 6, "own");
      await reached.opened;
      await sweep(all.begin(undefined, 2 * LINGERING_MS));
      goesOn.open();
      await fork;
      assert.equal(edgesIn(all), 1);
      assert.equal(await remove(one, source), "durable");
      await all.clock.pause(100);
      const { storage: other } = all.begin();
      assert.equal(String(await readAll(other, await loaded(other, "fork"))), "sharedown");
    });
  });

  test("goes with the sweep where the fork was never made, and is no matter of clocks that are behind", async () => {
    await withFrontEnds(async (all, { storage: one, way }) => {
      const source = await created(one, "source", "shared bytes");
      const publish = way.publish.bind(way);
      way.publish = (subject, ...given) => (subject.includes(".s.") ? Promise.resolve({ kind: "full" }) : publish(subject, ...given));
      way.purge = () => Promise.reject(new LogUnavailableError("no leader answers", ""));
      await assert.rejects(forked(one, source, "fork", 6, "own"));
      assert.equal(edgesIn(all), 1);
      const behind = all.begin(undefined, -2 * LINGERING_MS);
      assert.deepEqual(await sweep(behind), ["source"]);
      assert.equal(edgesIn(all), 1);
      await all.clock.pause(LINGERING_MS);
      assert.deepEqual(await sweep(behind), ["source"]);
      assert.equal(edgesIn(all), 0);
    });
  });

  test("goes with the sweep where a trim could not give it up, once no fork of the fork needs what it shares", async () => {
    await withFrontEnds(async (all, { storage: one }) => {
      const source = await created(one, "source", "shared bytes");
      const fork = await forked(one, source, "fork", 6, "own");
      assert.equal(await append(one, fork, "more"), "durable");
      const { storage: other } = all.begin();
      const ofFork = await forked(other, await loaded(other, "fork"), "fork of it", 8, "G");
      trimBefore(one, fork, 9);
      await all.clock.pause(100);
      assert.equal(fork.earliest, 9);
      assert.equal(await remove(one, source), "durable");
      const tidy = async (): Promise<number> => {
        await all.clock.pause(LINGERING_MS);
        await sweep(all.begin());
        return edgesIn(all);
      };
      assert.deepEqual([await tidy(), await tidy()], [2, 2]);
      assert.equal(String(await readAll(other, await loaded(other, "fork of it"))), "sharedowG");
      assert.equal(await remove(other, ofFork), "durable");
      await all.clock.pause(100);
      assert.deepEqual([await tidy(), await tidy()], [0, 0]);
      const { storage: last } = all.begin();
      assert.equal(await last.load("source"), null);
      assert.equal(String(await readAll(last, await loaded(last, "fork"))), "more");
    });
  });
});
