import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DamagedStreamError, type Position, type Storage, type StoredStream } from "../../../../src/storage/storage.js";
import { LINGERING_MS } from "../../../../src/storage/nats/writing/fork-edges.js";
import { Barrier } from "../../../helpers/watched-files.js";
import { append, created, forked, loaded, readAll, remove, startCreate } from "../../../helpers/engine.js";
import { frontEnds, type FrontEnds } from "../../../helpers/front-ends.js";
import { Random } from "../../../helpers/random.js";
import { trimBefore } from "../../../helpers/trim.js";

describe("a fork that keeps nothing of what it shares", () => {
  test("is read, written and deleted by a server that has not seen it, when its source is gone", async () => {
    await withFrontEnds(async (all, one) => {
      await weaned(all, one);
      assert.equal(await one.load("source"), null);
      for (const isNameUsed of [false, true]) {
        if (isNameUsed) assert.equal(await startCreate(one, "source", "new").outcome, "durable");
        const other = all.begin().storage;
        const seen = await loaded(other, "fork");
        assert.equal(String(await readAll(other, seen)), isNameUsed ? "more!" : "more");
        assert.equal(await append(other, seen, "!"), "durable");
        const ofFork = await forked(other, seen, `fork of it, ${isNameUsed}`, 11, "G");
        assert.equal(String(await readAll(one, await loaded(one, ofFork.name))), "moG");
      }
      const last = all.begin().storage;
      for (const name of ["fork of it, true", "fork of it, false", "fork"])
        assert.equal(await remove(last, await loaded(last, name)), "durable");
      await all.clock.pause(100);
      assert.equal(await one.load("fork"), null);
      assert.deepEqual(bodiesIn(all), ["", "", "", "", "new"], "four tombstones, and who has the name since");
    });
  });

  test("is told from a fork of it that has its source's name", async () => {
    await withFrontEnds(async (all, one) => {
      const fork = await weaned(all, one);
      await forked(one, fork, "source", 11, "!");
      for (const names of [
        ["fork", "source"],
        ["source", "fork"],
      ]) {
        const { storage } = all.begin();
        for (const name of names)
          assert.equal(String(await readAll(storage, await loaded(storage, name))), name === "fork" ? "more" : "mo!");
      }
    });
  });

  test("has a place for more messages than it keeps", async () => {
    await withFrontEnds(async (all, one) => {
      const fork = await weaned(all, one);
      await all.clock.pause(LINGERING_MS);
      for await (const { name } of one.list()) assert.equal(name, "fork");
      assert.deepEqual(bodiesIn(all), ["", "more"], "no tombstone is left");
      assert.deepEqual(await one.placeOfLast(fork, 100, () => null), { position: 9, skip: 0 });
    });
  });

  test("has its source while it begins where it was forked, as that offset names who wrote the byte before", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one, "source", "shared bytes");
      const middle = await forked(one, source, "middle", 6, "between");
      const fork = await forked(one, middle, "fork", 4, "own");
      assert.equal(await append(one, fork, "more"), "durable");
      await trimmed(all, one, fork, 4);
      assert.equal(fork.earliest, 4);
      for (const stream of [middle, source]) assert.equal(await remove(one, stream), "durable");
      await all.clock.pause(100);
      const { storage } = all.begin();
      const seen = await loaded(storage, "fork");
      assert.equal(seen.writerBefore(4), source.id);
      assert.equal(String(await readAll(storage, seen)), "ownmore");
      await trimmed(all, storage, seen, 7);
      assert.deepEqual(bodiesIn(all), ["", "", "", "", "more"], "two tombstones, two trims, and what is kept");
      assert.equal((await loaded(all.begin().storage, "fork")).earliest, 7);
    });
  });

  test("is loaded where its source was let go early, and whoever needs that source is damaged", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one, "source", "shared bytes");
      const fork = await forked(one, source, "fork", 6, "own");
      const { storage: other } = all.begin();
      const ofFork = await forked(other, await loaded(other, "fork"), "fork of it", 8, "G");
      await trimmed(all, one, fork, 6);
      for (const subject of [...all.cluster.subjects.keys()])
        if (subject.includes(`.f.`) && subject.endsWith(fork.id)) all.cluster.purge(subject, Infinity);
      assert.equal(await remove(one, source), "durable");
      const { storage } = all.begin();
      const seen = await loaded(storage, "fork");
      assert.equal(seen.writerBefore(6), source.id);
      assert.equal(String(await readAll(storage, seen)), "own");
      await assert.rejects(storage.load(ofFork.name), DamagedStreamError);
    });
  });
});

describe("a trim", () => {
  test("keeps what forks of a fork, made by another server, need of its source", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one, "source", "shared bytes");
      const fork = await forked(one, source, "fork", 6, "own");
      assert.equal(await append(one, fork, "more"), "durable");
      const { storage: other } = all.begin();
      await forked(other, await loaded(other, "fork"), "fork of it", 8, "G");
      await trimmed(all, one, fork, 9);
      assert.equal(fork.earliest, 9);
      assert.equal(await remove(one, source), "durable");
      await all.clock.pause(100);
      const { storage: last } = all.begin();
      assert.equal(String(await readAll(last, await loaded(last, "fork of it"))), "sharedowG");
      for (const name of ["fork of it", "fork"]) assert.equal(await remove(last, await loaded(last, name)), "durable");
      await all.clock.pause(100);
      assert.deepEqual(bodiesIn(all), ["", "", ""], "only tombstones are left");
    });
  });

  test("drops nothing that a fork needs which was made since forks were counted, whatever was trimmed then", async () => {
    await withFrontEnds(async (all, one) => {
      const [two, three] = [all.begin().storage, all.begin().storage];
      const stream = await created(one, "s", "first ");
      for (const payload of ["second ", "third ", "fourth"]) assert.equal(await append(one, stream, payload), "durable");
      const unforked = await loaded(three, "s");
      const [counted, goesOn] = [new Barrier(), new Barrier()];
      const way = all.all[0]?.way;
      assert.ok(way !== undefined);
      const { count } = way;
      way.count = async (filter) => {
        const counts = await count.call(way, filter);
        counted.open();
        await goesOn.opened;
        return counts;
      };
      trimBefore(one, stream, 6);
      await counted.opened;
      await forked(two, await loaded(two, "s"), "fork", 19, "!");
      await three.refresh(unforked);
      await trimmed(all, three, unforked, 13);
      await one.refresh(stream);
      assert.equal(stream.earliest, 13);
      goesOn.open();
      await all.clock.pause(100);
      const { storage } = all.begin();
      assert.equal(String(await readAll(storage, await loaded(storage, "fork"))), "second third !");
    });
  });
});

/** A fork that keeps only what it has of its own from 9 on, and whose source is deleted. */
async function weaned(all: FrontEnds, one: Storage): Promise<StoredStream> {
  const source = await created(one, "source", "shared bytes");
  const fork = await forked(one, source, "fork", 6, "own");
  assert.equal(await append(one, fork, "more"), "durable");
  await trimmed(all, one, fork, 9);
  assert.equal(await remove(one, source), "durable");
  return fork;
}

/** Trims a stream, and waits for what goes on behind that. */
async function trimmed({ clock }: FrontEnds, storage: Storage, stream: StoredStream, before: Position): Promise<void> {
  trimBefore(storage, stream, before);
  await clock.pause(100);
}

/** The bodies of all messages of streams, sorted. */
function bodiesIn({ cluster }: FrontEnds): string[] {
  const streams = [...cluster.subjects].filter(([subject]) => subject.includes(".s."));
  return streams.flatMap(([, messages]) => messages.map(({ body }) => String(body))).sort();
}

async function withFrontEnds(run: (all: FrontEnds, one: Storage) => Promise<void>): Promise<void> {
  const all = frontEnds(1, new Random(1));
  const [one] = all.all;
  assert.ok(one !== undefined);
  try {
    await all.clock.through(run(all, one.storage));
  } finally {
    await all.stop();
  }
}
