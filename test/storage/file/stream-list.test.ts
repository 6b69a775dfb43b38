import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ALL_NAMES } from "../../../src/protocol/names/name-range.js";
import type { StoredStream } from "../../../src/storage/storage.js";
import { offsetIn } from "../../../src/stream/rules/offset-tokens.js";
import { makeBackup, restored } from "../../helpers/backup.js";
import {
  append,
  crashAndRecover,
  created,
  forked,
  loaded,
  openFor,
  openEngine,
  recordOf,
  remove,
  reopen,
  type Engine,
} from "../../helpers/engine.js";
import { Random } from "../../helpers/random.js";
import { tempDir } from "../../helpers/temp-dir.js";

/** Everything that a list says of a stream. */
function gist(stream: StoredStream | null): object | null {
  if (stream === null) return null;
  const { name, config, state, earliest, newestAtMs } = stream;
  return {
    name,
    config,
    tail: offsetIn(stream, state.tail),
    earliest: offsetIn(stream, earliest),
    closed: state.closed,
    producers: [...(state.producers?.keys() ?? [])],
    newestAtMs,
    touchedAtMs: state.touchedAtMs,
  };
}

async function listed({ storage }: Engine): Promise<string[]> {
  const names = await storage.streamList.names(ALL_NAMES, 10_000);
  const found = await Promise.all(names.map(async (name) => ((await storage.streamList.look(name)) === null ? [] : [name])));
  return found.flat();
}

describe("the list of streams", () => {
  test("has those in memory, in files and in the journal, in order, with long names, and none that is deleted", async (t) => {
    const first = await openEngine();
    const names = ["b", "a", "a/b", "Ä/ö", "x".repeat(1000), `${"y".repeat(300)}/z`, "%41", "tilde~name"];
    for (const name of names) await created(first.storage, name, "x");
    await remove(first.storage, await created(first.storage, "gone"));
    assert.deepEqual(await listed(first), [...names].sort());
    const second = await reopen(first);
    t.after(() => second.storage.close());
    await created(second.storage, "new");
    assert.deepEqual(await listed(second), [...names, "new"].sort());
    await remove(second.storage, await loaded(second.storage, "a"));
    await created(second.storage, "newer");
    assert.deepEqual(await listed(second), [...names.filter((name) => name !== "a"), "new", "newer"].sort());
  });

  test("keeps up while it is built and afterwards, whatever is made and deleted meanwhile", async (t) => {
    const random = new Random(11);
    const engine = await openFor(t);
    const { storage } = engine;
    const live = new Map<string, StoredStream>();
    for (let at = 0; at < 60; at += 1) live.set(`s${at}`, await created(storage, `s${at}`));
    let built: Promise<string[]> | null = null;
    for (let step = 0; step < 200; step += 1) {
      if (step === 20) built = listed(engine);
      const name = `s${random.integer(0, 99)}`;
      const stream = live.get(name);
      if (stream === undefined) live.set(name, await created(storage, name));
      else {
        assert.equal(await remove(storage, stream), "durable");
        live.delete(name);
      }
    }
    await built;
    assert.deepEqual(await listed(engine), [...live.keys()].sort());
  });

  test("says of a stream the same whether it is in memory or not, and brings none there", async (t) => {
    const first = await openEngine();
    const source = await created(first.storage, "s", "one");
    await append(first.storage, source, recordOf("twotwo", { atMs: 777, closes: true, producer: { id: "p", epoch: 1, seq: 0 } }));
    const fork = await forked(first.storage, source, "f", 5);
    await forked(first.storage, fork, "g", 5);
    await append(first.storage, await forked(first.storage, source, "h", 3), "own");
    const names = ["f", "g", "h", "s"];
    const look = (engine: Engine): Promise<(object | null)[]> =>
      Promise.all(names.map(async (name) => gist(await engine.storage.streamList.look(name))));
    const before = await look(first);
    assert.ok(!before.includes(null));
    const second = await reopen(first);
    t.after(() => second.storage.close());
    assert.deepEqual(await look(second), before);
    // Nothing was loaded by that: each is read again from its file.
    const reads = second.files.count("open", /meta\.json$/);
    assert.deepEqual(await look(second), before);
    assert.ok(second.files.count("open", /meta\.json$/) > reads);
    // A fork first: its source comes into memory with it, and nobody has that yet.
    for (const name of names) {
      await loaded(second.storage, name);
      assert.deepEqual(await look(second), before);
    }
  });

  test("gives the offsets of a restored directory, of what is in memory, in the journal and in files", async (t) => {
    const first = await openEngine();
    await forked(first.storage, await created(first.storage, "s", "one"), "f", 3);
    await first.storage.close();
    const dest = join(tempDir(), "backup");
    await makeBackup(first.dir, dest);
    const second = await restored(dest);
    const atMs = second.clock.nowMs();
    const source = await loaded(second.storage, "s");
    await append(second.storage, source, recordOf("two", { atMs }));
    await append(second.storage, await loaded(second.storage, "f"), recordOf("own", { atMs }));
    await forked(second.storage, source, "g", 6);
    const look = ({ storage }: Engine): Promise<(object | null)[]> =>
      Promise.all(["f", "g", "s"].map(async (name) => gist(await storage.streamList.look(name))));
    const before = await look(second);
    const third = await crashAndRecover(second);
    assert.deepEqual(await look(third), before);
    const fourth = await reopen(third);
    t.after(() => fourth.storage.close());
    assert.deepEqual(await look(fourth), before);
    for (const name of ["f", "g", "s"]) await loaded(fourth.storage, name);
    assert.deepEqual(await look(fourth), before);
  });

  test("reads each source of forks that are looked at together once", async (t) => {
    const first = await openEngine();
    const length = 24;
    let source = await created(first.storage, "s0", "x");
    for (let at = 1; at < length; at += 1) source = await forked(first.storage, source, `s${at}`);
    const second = await reopen(first);
    const before = second.files.count("open", /meta\.json$/);
    t.after(() => second.storage.close());
    const names = await listed(second);
    assert.equal(names.length, length);
    const opened = second.files.count("open", /meta\.json$/) - before;
    assert.ok(opened <= 2 * length, `${opened} files of ${length} streams, each for itself and as a source`);
  });

  test("tells of what is made, closed and deleted, once it is durable", async (t) => {
    const { storage } = await openFor(t);
    const told: string[] = [];
    storage.streamList.events
      .on("created", ({ name, state }) => told.push(`created ${name} ${state.closed}`))
      .on("closed", ({ name }) => told.push(`closed ${name}`))
      .on("deleted", (name) => told.push(`deleted ${name}`));
    const source = await created(storage, "s", "abc");
    await append(storage, source, "d");
    await append(storage, source, recordOf("", { closes: true }));
    const fork = await forked(storage, source, "f", 2);
    await remove(storage, source);
    await remove(storage, fork);
    assert.deepEqual(told, ["created s false", "closed s", "created f false", "deleted s", "deleted f"]);
  });
});
