import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Settlement, Storage } from "../../src/storage/storage.js";
import { Registry } from "../../src/stream/registry.js";
import { appendByName } from "../helpers/append.js";
import { append, created, keptLog, loaded, openFor, recordOf, remove, type Engine } from "../helpers/engine.js";
import { frontEnds } from "../helpers/front-ends.js";
import { Random } from "../helpers/random.js";
import { appendOf, createOf, find, gist } from "../helpers/registries.js";
import { Barrier } from "../helpers/watched-files.js";

/** What another server does meanwhile; each is used once. */
interface Others {
  /** How the next change of ours settles, without effect, once `before` is done. */
  next: { readonly how: Settlement; readonly before?: () => Promise<unknown> } | null;
  /** What was done when the next refresh finds it. */
  unseen: (() => Promise<unknown>) | null;
}

/** A registry on an engine that others seem to write as well. */
async function sharedRegistry(t: TestContext): Promise<{ registry: Registry; engine: Engine; others: Others }> {
  const engine = await openFor(t);
  const others: Others = { next: null, unseen: null };
  const settleFirst = (settle: (how: Settlement) => void): boolean => {
    const { next } = others;
    others.next = null;
    if (next !== null) void (next.before?.() ?? Promise.resolve()).then(() => settle(next.how));
    return next !== null;
  };
  const shared: Partial<Storage> = {
    append: (stream, record, tail, settle) => (settleFirst(settle) ? null : engine.storage.append(stream, record, tail, settle)),
    delete: (stream, settle) => (settleFirst(settle) ? null : engine.storage.delete(stream, settle)),
    create: (name, config, initial, settle) => {
      if (others.next === null) return engine.storage.create(name, config, initial, settle);
      // What is on its way to a log that will not take it: no engine knows it.
      const unborn = engine.storage.create(`unborn ${name}`, config, initial, () => settleFirst(settle));
      return typeof unborn === "string" ? unborn : Object.create(unborn, { name: { value: name } });
    },
    refresh: async () => {
      const { unseen } = others;
      others.unseen = null;
      await unseen?.();
    },
  };
  const storage = new Proxy(engine.storage, {
    get(target, name) {
      const own: unknown = Reflect.get(shared, name) ?? Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  const { log } = keptLog();
  const { clock } = engine;
  const registry = new Registry({ storage, clock, log, ttlMode: "sliding", maxLoadedStreams: 10, maxLoadedProducers: 10 });
  t.after(() => registry.stop());
  return { registry, engine, others };
}

describe("where several servers write", () => {
  test("an append that came second is decided again, and stored once", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const stored = await loaded(engine.storage, "s");
    others.next = { how: "tail-moved", before: () => append(engine.storage, stored, "theirs ") };
    assert.equal(gist(await appendByName(registry, "s", appendOf("ours"))), "appended");
    assert.equal((await engine.storage.read(stored, 0, 100)).toString(), "theirs ours");
  });

  test("one that others have closed meanwhile is refused by what is there now", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const stored = await loaded(engine.storage, "s");
    others.next = { how: "tail-moved", before: () => append(engine.storage, stored, recordOf("", { closes: true })) };
    assert.equal(gist(await appendByName(registry, "s", appendOf("late"))), "stream-closed");
    assert.equal(stored.state.tail, 0);
  });

  test("a refusal that a newer state turns round is not given", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const stored = await loaded(engine.storage, "s");
    const producer = { id: "p", epoch: 0, seq: 0 };
    others.unseen = () => append(engine.storage, stored, recordOf("0", { producer }));
    assert.equal(gist(await appendByName(registry, "s", appendOf("1", { producer: { ...producer, seq: 1 } }))), "appended");
    assert.equal(gist(await appendByName(registry, "s", appendOf("3", { producer: { ...producer, seq: 3 } }))), "producer-gap");
    assert.equal((await engine.storage.read(stored, 0, 100)).toString(), "01");
  });

  test("of an append whose outcome nobody knows, the client is told so", async (t) => {
    const { registry, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    others.next = { how: "unknown" };
    assert.equal(gist(await appendByName(registry, "s", appendOf("?"))), "outcome-unknown");
    assert.equal(gist(await appendByName(registry, "s", appendOf("!"))), "appended");
  });

  test("an append that always comes second is refused in the end", async (t) => {
    const { registry, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const again = (): Promise<void> => {
      others.next = { how: "tail-moved", before: again };
      return Promise.resolve();
    };
    await again();
    assert.equal(gist(await appendByName(registry, "s", appendOf("never"))), "overloaded");
  });

  test("a read finds what others had stored before it came", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const stored = await loaded(engine.storage, "s");
    others.unseen = () => append(engine.storage, stored, "theirs");
    const found = await registry.find("s");
    assert.ok("tail" in found);
    assert.equal(found.tail, 6);
  });

  test("a creation that came second finds what is there, the same or not", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    for (const [name, contentType, expected] of [
      ["same", "text/plain", "there"],
      ["other", "text/css", "config-mismatch"],
    ] as const) {
      others.next = { how: "exists", before: () => created(engine.storage, name, "theirs", { contentType }) };
      assert.equal(gist(await registry.create(name, createOf())), expected);
      const found = await registry.find(name);
      assert.ok("tail" in found);
      assert.equal(found.tail, 6);
    }
  });

  test("a deletion that came second deletes what is there now", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf());
    const stored = await loaded(engine.storage, "s");
    others.next = { how: "tail-moved", before: () => append(engine.storage, stored, "theirs") };
    assert.equal(gist(await registry.delete("s")), "deleted");
    assert.equal(await engine.storage.load("s"), null);
  });

  test("a stream that others have deleted leaves memory, and another may have its name", async (t) => {
    const { registry, engine, others } = await sharedRegistry(t);
    await registry.create("s", createOf({ text: "old" }));
    const stored = await loaded(engine.storage, "s");
    others.unseen = () => remove(engine.storage, stored);
    const found = await registry.find("s");
    assert.ok("code" in found);
    assert.equal(found.code, "stream-not-found");
    assert.equal(gist(await registry.create("s", createOf())), "created");
    assert.equal(gist(await appendByName(registry, "s", appendOf("new"))), "appended");
    assert.equal((await engine.storage.read(await loaded(engine.storage, "s"), 0, 100)).toString(), "new");
  });

  test("news of a stream that has left memory come late, and leave the new one of its name to its readers", async () => {
    const { all, clock, stop } = frontEnds(2, new Random(1));
    const [one, other] = all;
    assert.ok(one !== undefined && other !== undefined);
    const { way, registry } = other;
    const steps = async (): Promise<void> => {
      assert.equal(gist(await one.registry.create("s", createOf({ text: "old" }))), "created");
      await find(registry, "s");
      const { last } = way;
      const gate = new Barrier();
      way.last = (subject) => {
        way.last = last;
        return gate.opened.then(() => last.call(way, subject));
      };
      const late = registry.find("s");
      registry.start();
      while (registry.loadedCount > 0) await clock.pause(1000);
      assert.equal(gist(await one.registry.delete("s")), "deleted");
      assert.equal(gist(await one.registry.create("s", createOf())), "created");
      const current = await find(registry, "s");
      const ends: number[] = [];
      const leave = current.follow(
        ({ to }) => void ends.push(to),
        () => assert.fail("it lives"),
      );
      gate.open();
      assert.equal(await late, current);
      assert.equal(await find(registry, "s"), current);
      assert.equal(gist(await appendByName(one.registry, "s", appendOf("new"))), "appended");
      await clock.pause(1000);
      assert.deepEqual(ends, [3]);
      leave();
    };
    await clock.through(steps()).finally(stop);
  });

  test("a stream whose time is over for one is over for the other, though that has seen it later", async () => {
    const { all, clock, stop } = frontEnds(2, new Random(1));
    const [one, other] = all.map(({ registry }) => registry);
    assert.ok(one !== undefined && other !== undefined);
    const whatIs = async (registry: Registry, name: string): Promise<string> => {
      const found = await registry.find(name);
      return "code" in found ? found.code : "there";
    };
    const steps = async (): Promise<void> => {
      for (let round = 0; round < 50; round += 1) {
        const name = `s${round}`;
        assert.equal(gist(await one.create(name, createOf({ ttlSeconds: 1 }))), "created");
        assert.equal(await whatIs(other, name), "there");
        while ((await whatIs(one, name)) === "there") await clock.pause(100);
        assert.equal(await whatIs(other, name), "stream-not-found", `round ${round}`);
      }
    };
    await clock.through(steps()).finally(stop);
  });

  test("a stream does not expire early for one that knows only of the read before the last at the other", async () => {
    const { all, clock, stop } = frontEnds(2, new Random(1));
    const [one, other] = all.map(({ registry }) => registry);
    assert.ok(one !== undefined && other !== undefined);
    const read = async (): Promise<void> => {
      const found = await other.find("s");
      assert.ok("tail" in found);
      await found.touch();
    };
    const steps = async (): Promise<void> => {
      assert.equal(gist(await one.create("s", createOf({ ttlSeconds: 2 }))), "created");
      await read();
      await clock.pause(1000);
      const notedAtMs = clock.nowMs();
      await read();
      await clock.pause(400);
      await read(); // too soon after the one before to be noted
      await clock.pause(notedAtMs + 2250 - clock.nowMs());
      assert.ok("tail" in (await one.find("s")), "the last read was answered less than two seconds ago");
      await clock.pause(1000);
      assert.ok("code" in (await one.find("s")));
    };
    await clock.through(steps()).finally(stop);
  });

  test("a source that another has deleted is gone while it has forks, and its name is free after that, whoever asks", async () => {
    const { all, clock, stop } = frontEnds(2, new Random(1));
    const [one, other] = all.map(({ registry }) => registry);
    assert.ok(one !== undefined && other !== undefined);
    const steps = async (): Promise<void> => {
      assert.equal(gist(await one.create("source", createOf({ text: "shared" }))), "created");
      const fork = { source: "source", offset: null, place: null, subOffset: 0 };
      assert.equal(gist(await other.create("fork", createOf({ contentType: null, fork }))), "created");
      assert.equal(gist(await one.delete("source")), "deleted");
      assert.equal(gist(await other.delete("source")), "stream-gone");
      assert.equal(gist(await appendByName(other, "source", appendOf("late"))), "stream-gone");
      assert.equal(gist(await other.create("source", createOf())), "name-held-by-forks");
      assert.equal(gist(await one.delete("fork")), "deleted");
      await clock.pause(100); // the bytes of a deleted stream go behind its answer
      assert.equal(gist(await one.create("source", createOf())), "created");
      assert.equal(gist(await appendByName(other, "source", appendOf("new"))), "appended");
      assert.equal(gist(await other.delete("source")), "deleted");
    };
    await clock.through(steps()).finally(stop);
  });
});
