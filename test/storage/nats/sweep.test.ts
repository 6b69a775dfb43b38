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

  for (const [what, ofLost] of [
    ["the shard with the lease", (subject: string) => subject.includes(".0.")],
    ["the other shard", (subject: string) => subject.includes(".1.")],
    ["the stream of touches", (subject: string) => subject.startsWith("sdt.")],
  ] as const)
    test(`goes on without ${what}`, async () => {
      await withFrontEnds(async (all, { storage: one, way }) => {
        const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
        for (const [index, name] of names.entries()) await created(one, name, "x", index === 0 ? { ttlSeconds: 1 } : {});
        await all.clock.pause(5000);
        const lost = new Set([...all.cluster.subjects.keys()].filter(ofLost));
        const unavailable = (): Promise<never> => Promise.reject(new LogUnavailableError("no leader answers", ""));
        for (const call of ["last", "next", "range", "find", "count", "purge"] as const) {
          const asked = way[call].bind(way) as (...given: unknown[]) => Promise<never>;
          way[call] = (...given: unknown[]) => (ofLost(String(given[0])) ? unavailable() : asked(...given));
        }
        const heads = way.heads.bind(way);
        way.heads = async function* (of) {
          for await (const head of heads(of))
            if (![...lost].some((subject) => all.cluster.subjects.get(subject)?.includes(head as never))) yield head;
        };
        const found: string[] = [];
        const listing = (async () => {
          for await (const { name } of one.list()) found.push(name);
        })();
        await assert.rejects(listing, /no leader answers/);
        const kept = [...all.cluster.subjects.keys()].filter((subject) => subject.includes(".s.") && !lost.has(subject));
        const expected = kept
          .map((subject) => subject.slice(subject.lastIndexOf(".") + 1))
          .filter((name) => what !== "the stream of touches" || name !== "s0");
        assert.deepEqual(found.sort(), expected.sort());
      });
    });
});
