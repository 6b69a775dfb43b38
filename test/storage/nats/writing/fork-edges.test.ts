import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LINGERING_MS } from "../../../../src/storage/nats/log/sequence-ages.js";
import { LogUnavailableError } from "../../../../src/storage/nats/log/replicated-log.js";
import { created, forked, loaded, readAll, remove } from "../../../helpers/engine.js";
import { withFrontEnds, type FrontEnd, type FrontEnds } from "../../../helpers/front-ends.js";
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
});
