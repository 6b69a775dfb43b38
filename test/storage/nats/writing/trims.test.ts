import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  DamagedStreamError,
  type Position,
  type RetentionLimits,
  type Storage,
  type StoredStream,
} from "../../../../src/storage/storage.js";
import { ownStream } from "../../../../src/storage/nats/memory/cluster-stream.js";
import { LINGERING_MS } from "../../../../src/storage/nats/log/sequence-ages.js";
import { Barrier } from "../../../helpers/watched-files.js";
import { append, created, forked, loaded, originAt, readAll, recordOf, remove, startCreate } from "../../../helpers/engine.js";
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

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

describe("a trim of a fork by age", () => {
  test("keeps what is new of its own, whatever its source was appended to since", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await createdNow(all, one, "source", "0123456789");
      const fork = await forkedNow(all, one, source, "fork", 10);
      await all.clock.pause(2 * MINUTE_MS);
      await appendNow(all, one, source, "x".repeat(100));
      await all.clock.pause(66 * MINUTE_MS);
      await appendNow(all, one, source, "late");
      await appendNow(all, one, fork, "ok");
      await trimmedBy(all, one, fork, { maxBytes: Infinity, maxAgeMs: HOUR_MS });
      assert.equal(fork.earliest, 10);
      assert.equal(String(await readAll(one, fork)), "ok");
      assert.equal(String(await readAll(one, source)), `0123456789${"x".repeat(100)}late`);
    });
  });

  test("drops what is old of its own, while nobody appends to its source", async () => {
    await withFrontEnds(async (all, one) => {
      const fork = await forkedNow(all, one, await createdNow(all, one, "source", "0123456789"), "fork", 10);
      await all.clock.pause(MINUTE_MS);
      await appendNow(all, one, fork, "old");
      await all.clock.pause(67 * MINUTE_MS);
      await appendNow(all, one, fork, "new");
      await trimmedBy(all, one, fork, { maxBytes: Infinity, maxAgeMs: HOUR_MS });
      assert.equal(fork.earliest, 13);
      assert.equal(String(await readAll(one, fork)), "new");
    });
  });

  test("keeps what is new of that which it shares, through a fork that shares more", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await createdNow(all, one, "source", "aaaaa");
      await all.clock.pause(30 * MINUTE_MS);
      await appendNow(all, one, source, "bbbbb");
      const middle = await forkedNow(all, one, source, "middle", 10);
      await appendNow(all, one, middle, "more");
      const fork = await forkedNow(all, one, middle, "fork", 7);
      await all.clock.pause(35 * MINUTE_MS);
      await appendNow(all, one, fork, "own");
      await trimmedBy(all, one, fork, { maxBytes: 8, maxAgeMs: HOUR_MS });
      assert.equal(fork.earliest, 5);
      assert.equal(String(await readAll(one, fork)), "bbown");
    });
  });

  test("keeps what is new where it has nothing of its own yet", async () => {
    await withFrontEnds(async (all, one) => {
      await all.clock.pause(2 * HOUR_MS);
      const source = await createdNow(all, one, "source", "first ");
      for (const payload of ["second ", "third"]) await appendNow(all, one, source, payload);
      const fork = await forkedNow(all, one, source, "fork", 18);
      await trimmedBy(all, one, fork, { maxBytes: 5, maxAgeMs: HOUR_MS });
      assert.equal(fork.earliest, 13);
      assert.equal(String(await readAll(one, fork)), "third");
    });
  });

  test("goes by all that its source has, also at a server that has seen less of it", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await createdNow(all, one, "source", "0123456789");
      const { storage: other } = all.begin();
      assert.equal((await loaded(other, "source")).state.tail, 10);
      await all.clock.pause(40 * MINUTE_MS);
      await appendNow(all, one, source, "x".repeat(100));
      const fork = await forkedNow(all, one, source, "fork", 110);
      await all.clock.pause(25 * MINUTE_MS);
      await appendNow(all, one, fork, "own");
      const seen = await loaded(other, "fork");
      await trimmedBy(all, other, seen, { maxBytes: 100, maxAgeMs: HOUR_MS });
      assert.equal(seen.earliest, 10);
      assert.equal(String(await readAll(other, seen)), `${"x".repeat(100)}own`);
    });
  });
});

describe("a trim by age", () => {
  test("is due once the oldest bytes are an eighth older than the limit, and leaves none beyond it", async () => {
    await withFrontEnds(async (all, one) => {
      const stream = await createdNow(all, one, "s", "x");
      const limits = { maxBytes: Infinity, maxAgeMs: MINUTE_MS };
      const keptMs: number[] = [];
      let { earliest } = stream;
      for (let index = 0; index < 1000; index += 1) {
        await appendNow(all, one, stream, "x");
        one.trim(stream, limits, all.clock.nowMs());
        await all.clock.pause(100);
        if (stream.earliest > earliest) keptMs.push(all.clock.nowMs() - ownStream(stream).earliestAtMs);
        ({ earliest } = stream);
      }
      // In a little more than 100 s one is due after 67.5 s, and then after each 7.5 s.
      assert.ok(keptMs.length >= 5 && keptMs.length <= 8, `there were ${keptMs.length} trims`);
      for (const ms of keptMs) assert.ok(ms > 59_000 && ms < 61_000, `${ms} ms were kept`);
    });
  });
});

describe("a trim of a source", () => {
  test("waits for its forks, and goes on once they are gone, whichever server has deleted them", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one, "source", "first ");
      for (const payload of ["second ", "third"]) assert.equal(await append(one, source, payload), "durable");
      const { storage: other } = all.begin();
      const mine = await forked(one, source, "mine", 6);
      await trimmedBy(all, one, source, { maxBytes: 12, maxAgeMs: Infinity });
      assert.equal(source.earliest, 0);
      assert.equal(await remove(one, mine), "durable");
      await all.clock.pause(100);
      assert.equal(source.forkCount, 0);
      await trimmedBy(all, one, source, { maxBytes: 12, maxAgeMs: Infinity });
      assert.equal(source.earliest, 6);
      await forked(one, source, "theirs", 13);
      await all.clock.pause(MINUTE_MS);
      await trimmedBy(all, one, source, { maxBytes: 5, maxAgeMs: Infinity });
      assert.equal(source.earliest, 6, "its forks are counted again, and one is there");
      assert.equal(await remove(other, await loaded(other, "theirs")), "durable");
      await all.clock.pause(MINUTE_MS);
      await trimmedBy(all, one, source, { maxBytes: 5, maxAgeMs: Infinity });
      assert.equal(source.earliest, 13);
    });
  });

  test("is not needed for its forks to be counted again: reading it does that as well", async () => {
    await withFrontEnds(async (all, one) => {
      const source = await created(one, "source", "bytes");
      await forked(one, source, "fork", 5);
      const { storage: other } = all.begin();
      assert.equal(await remove(other, await loaded(other, "fork")), "durable");
      await all.clock.pause(MINUTE_MS);
      assert.equal(source.forkCount, 1);
      await one.refresh(source);
      assert.equal(source.forkCount, 0);
    });
  });
});

/** Makes a stream in the time of the clock. */
function createdNow({ clock }: FrontEnds, storage: Storage, name: string, payload: string): Promise<StoredStream> {
  return created(storage, name, payload, { createdAtMs: clock.nowMs() });
}

function forkedNow({ clock }: FrontEnds, storage: Storage, source: StoredStream, name: string, point: Position): Promise<StoredStream> {
  return created(storage, name, "", { createdAtMs: clock.nowMs(), forkedFrom: originAt(source, point) });
}

async function appendNow({ clock }: FrontEnds, storage: Storage, stream: StoredStream, payload: string): Promise<void> {
  assert.equal(await append(storage, stream, recordOf(payload, { atMs: clock.nowMs() })), "durable");
}

/** Trims a stream by the time of the clock, and waits for what goes on behind that. */
async function trimmedBy({ clock }: FrontEnds, storage: Storage, stream: StoredStream, limits: RetentionLimits): Promise<void> {
  storage.trim(stream, limits, clock.nowMs());
  await clock.pause(100);
}

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
