import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LogUnavailableError } from "../../../src/storage/nats/log/replicated-log.js";
import { LINGERING_MS } from "../../../src/storage/nats/log/sequence-ages.js";
import { created, forked, remove } from "../../helpers/engine.js";
import { withFrontEnds, type FrontEnds } from "../../helpers/front-ends.js";

function subjectsIn({ cluster }: FrontEnds, part: string): string[] {
  return [...cluster.subjects.keys()].filter((subject) => subject.includes(part));
}

describe("a sweep", () => {
  test("goes on without what it can't look at, and tells of that at its end", async () => {
    await withFrontEnds(async (all, { storage: one, way }) => {
      const source = await created(one, "source", "shared bytes");
      await forked(one, source, "fork", 6, "own");
      await remove(one, await created(one, "deleted"));
      await all.clock.pause(LINGERING_MS);
      way.last = ((last) => (subject: string) => {
        if (subject.endsWith(".fork")) return Promise.reject(new LogUnavailableError("no leader answers", ""));
        return last(subject);
      })(way.last.bind(way));
      const names: string[] = [];
      const listing = (async () => {
        for await (const { name } of one.list()) names.push(name);
      })();
      await assert.rejects(listing, /no leader answers/);
      assert.deepEqual(names.sort(), ["fork", "source"]);
      assert.deepEqual(subjectsIn(all, ".s.deleted"), []);
      assert.equal(subjectsIn(all, ".f.").length, 1);
    });
  });

  test("drops a tombstone after ten minutes by no clock that can be set", async () => {
    await withFrontEnds(async (all, { storage: one }) => {
      await remove(one, await created(one, "deleted"));
      const { storage: ahead } = all.begin(undefined, 2 * LINGERING_MS);
      const { storage: behind } = all.begin(undefined, -2 * LINGERING_MS);
      const sweep = async (storage: typeof one): Promise<number> => {
        await all.clock.pause(3 * 60_000);
        for await (const { name } of storage.list()) assert.fail(name);
        return subjectsIn(all, ".s.deleted").length;
      };
      assert.deepEqual([await sweep(ahead), await sweep(behind), await sweep(ahead)], [1, 1, 1]);
      assert.equal(await sweep(behind), 0);
    });
  });
});
