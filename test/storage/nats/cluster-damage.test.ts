import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ALL_NAMES } from "../../../src/protocol/names/name-range.js";
import { DamagedStreamError } from "../../../src/storage/storage.js";
import { append, created, forked, loaded, readAll, recordOf, remove, startCreate } from "../../helpers/engine.js";
import { withFrontEnds, type FrontEnd, type FrontEnds } from "../../helpers/front-ends.js";

/** A front end with a fork whose source somebody has removed from the log by hand, and a fork of that fork. */
async function damaged(all: FrontEnds, one: FrontEnd): Promise<FrontEnd> {
  const source = await created(one.storage, "source", "shared bytes");
  const fork = await forked(one.storage, source, "fork", 6, "own");
  await forked(one.storage, fork, "fork of it", 7, "its own");
  for (const subject of [...all.cluster.subjects.keys()]) if (subject.endsWith(".source")) all.cluster.purge(subject, Infinity);
  return all.begin();
}

describe("a stream of a cluster that lacks what it needs", () => {
  test("is told in the log once, and counted", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage, log } = await damaged(all, one);
      for (let times = 0; times < 3; times += 1) {
        await assert.rejects(storage.load("fork"), DamagedStreamError);
        await assert.rejects(storage.load("fork of it"), DamagedStreamError);
      }
      const [line, ...more] = log.filter(({ level }) => level === "error");
      const problem = "the stream that it was forked from is not there";
      assert.deepEqual(line, { level: "error", message: "a stream is damaged", fields: { stream: "fork", file: "source", problem } });
      assert.deepEqual(more, []);
      assert.equal(storage.health().damagedStreams, 1);
    });
  });

  test("is deleted once no fork needs it, and its name is free", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage, log } = await damaged(all, one);
      await assert.rejects(storage.load("fork"), DamagedStreamError);
      assert.equal(await storage.deleteDamaged("fork"), "needed");
      const { fields } = log.find(({ message }) => message.startsWith("a damaged stream is not deleted")) ?? { fields: {} };
      assert.deepEqual(fields, { stream: "fork", count: 1, forks: '["fork of it"]' });
      assert.equal(await storage.deleteDamaged("fork of it"), "durable");
      await all.clock.pause(100);
      assert.equal(await storage.deleteDamaged("fork"), "durable");
      await all.clock.pause(100);
      assert.equal(storage.health().damagedStreams, 0);
      assert.deepEqual(
        [...all.cluster.subjects].map(([subject, messages]) => [subject.split(".").at(-2), messages.length]),
        [...all.cluster.subjects].map(() => ["s", 1]),
        "no edge is left, and of the streams their tombstones",
      );
      for (const name of ["fork", "fork of it"]) {
        assert.equal(await storage.load(name), null);
        assert.equal(await startCreate(storage, name, "new").outcome, "durable");
        const again = await loaded(all.begin().storage, name);
        assert.equal(String(await readAll(storage, await loaded(storage, name))), "new");
        assert.equal(again.state.tail, 3);
      }
    });
  });

  test("that another front end deleted first is looked for again", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage } = await damaged(all, one);
      const other = all.begin();
      assert.equal(await other.storage.deleteDamaged("fork of it"), "durable");
      assert.equal(await storage.deleteDamaged("fork of it"), "tail-moved");
      assert.deepEqual(await other.registry.delete("fork of it"), await all.begin().registry.delete("nothing"));
      assert.deepEqual(await other.registry.delete("fork"), { kind: "deleted" });
    });
  });

  test("goes by its deletion through the registry, where all others are sound", async () => {
    await withFrontEnds(async (all, one) => {
      const { registry, storage } = await damaged(all, one);
      const sound = await created(storage, "sound", "x");
      assert.equal((await registry.delete("fork")).kind, "refused");
      assert.deepEqual(await registry.delete("fork of it"), { kind: "deleted" });
      assert.equal(await append(storage, sound, recordOf("y")), "durable");
      assert.equal(await remove(storage, sound), "durable");
    });
  });

  test("is not in the list, and the others are", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage } = await damaged(all, one);
      await created(storage, "sound", "x");
      const found: unknown[] = [];
      for (const name of await storage.streamList.names(ALL_NAMES, 10)) found.push((await storage.streamList.look(name))?.name);
      assert.deepEqual(found, [undefined, undefined, "sound"]);
    });
  });

  test("that is kept for its forks is not said to change too fast", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one.storage, "source", "shared bytes");
      const fork = await forked(one.storage, source, "fork", 6, "own");
      await forked(one.storage, fork, "fork of it", 7, "its own");
      assert.equal(await remove(one.storage, fork), "durable");
      for (const subject of [...all.cluster.subjects.keys()]) if (subject.endsWith(".source")) all.cluster.purge(subject, Infinity);
      const { registry } = all.begin();
      assert.equal(codeOf(await registry.delete("fork")), "stream-damaged");
    });
  });

  /** A stream with more producers than a message has room for, whose snapshot of them somebody has removed. */
  async function withoutSnapshot(all: FrontEnds, one: FrontEnd): Promise<FrontEnd> {
    const { storage } = one;
    const stream = await created(storage, "s");
    for (let index = 0; index < 40; index += 1)
      assert.equal(await append(storage, stream, recordOf("x", { producer: { id: `p${index}`, epoch: 0, seq: 0 } })), "durable");
    const other = all.begin();
    await loaded(other.storage, "s");
    for (let index = 0; index < 5; index += 1)
      assert.equal(await append(storage, stream, recordOf("y", { producer: { id: `p${index}`, epoch: 0, seq: 1 } })), "durable");
    const [subject, messages] = [...all.cluster.subjects].find(([name]) => name.endsWith(".s.s")) ?? ["", []];
    all.cluster.purge(subject, messages.at(-1)?.sequence ?? 0);
    return other;
  }

  test("is found to be, and deleted, by a front end that has it in memory", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage, registry, log } = await withoutSnapshot(all, one);
      await assert.rejects(storage.load("s"), DamagedStreamError);
      assert.deepEqual(
        log.filter(({ level }) => level === "error").map(({ message }) => message),
        ["a stream is damaged"],
      );
      assert.equal(storage.health().damagedStreams, 1);
      assert.deepEqual(await registry.delete("s"), { kind: "deleted" });
      assert.equal(storage.health().damagedStreams, 0);
    });
  });

  test("is not counted once another front end has deleted it, or it is sound again", async () => {
    await withFrontEnds(async (all, one) => {
      const { storage } = await damaged(all, one);
      const other = all.begin();
      await assert.rejects(storage.load("fork of it"), DamagedStreamError);
      await assert.rejects(other.storage.load("fork of it"), DamagedStreamError);
      assert.equal(storage.health().damagedStreams, 1);
      assert.equal(await other.storage.deleteDamaged("fork of it"), "durable");
      assert.equal(await other.storage.deleteDamaged("fork"), "durable");
      await all.clock.pause(100);
      assert.deepEqual([storage.health().damagedStreams, other.storage.health().damagedStreams], [0, 0]);
      await withoutSnapshot(all, one).then(({ storage: seeing }) => assert.rejects(seeing.load("s"), DamagedStreamError));
    });
  });
});

function codeOf(answer: { readonly kind: string }): unknown {
  return "code" in answer ? answer.code : answer.kind;
}
