import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Position, Storage, StoredStream } from "../../../src/storage/storage.js";
import { append, bytesOf, created, forked, loaded, openEngine, recordOf, reopen, settled } from "../../helpers/engine.js";
import { Random } from "../../helpers/random.js";
import { trimBefore } from "../../helpers/trim.js";

/** An append as the test made it: it ends at `end`. */
interface Made {
  readonly start: number;
  readonly end: number;
  readonly messages: number;
  readonly atMs: number;
}

/** The place of the last `count` messages of what is kept: the start of an append, and the messages to skip. */
function expectedLast(made: readonly Made[], earliest: number, tail: number, count: number): { position: number; skip: number } {
  let left = count;
  for (const { start, messages } of made.filter(({ start }) => start >= earliest && start < tail).reverse()) {
    if (messages >= left) return { position: start, skip: messages - left };
    left -= messages;
  }
  return { position: earliest, skip: 0 };
}

async function check(storage: Storage, stream: StoredStream, made: readonly Made[]): Promise<void> {
  const { tail } = stream.state;
  const { earliest } = stream;
  const cutIn = async (from: Position, to: Position): Promise<number> => {
    const part = made.find(({ start, end }) => start === from && end === to);
    assert.ok(part !== undefined, `${from}..${to} is a part of an append`);
    return part.messages;
  };
  for (const count of [1, 2, 3, 7, 40, 333, 1000, 5000, 1_000_000]) {
    assert.deepEqual(
      await storage.placeOfLast(stream, count, cutIn),
      expectedLast(made, earliest, tail, count),
      `${stream.name}: last ${count}`,
    );
  }
  const kept = made.filter(({ start }) => start >= earliest);
  const times = [0, 1e15, ...kept.filter((_, at) => at % 37 === 0).flatMap(({ atMs }) => [atMs - 1, atMs, atMs + 0.5])];
  for (const atMs of times) {
    const expected = kept.find((one) => one.atMs >= atMs)?.start ?? tail;
    assert.equal(await storage.placeSince(stream, atMs), expected, `${stream.name}: since ${atMs}`);
  }
}

describe("places", () => {
  test("are found by number and by time in memory, in files, in forks of forks, behind what is trimmed, and after a restart", async (t) => {
    const random = new Random(7);
    let engine = await openEngine({ segmentBytes: 16 * 1024 });
    t.after(() => engine.storage.close());
    const histories = new Map<string, Made[]>();
    let atMs = 1000;
    const grow = async (name: string, appends: number): Promise<StoredStream> => {
      const stream = await loaded(engine.storage, name);
      const made = histories.get(name) ?? [];
      let tail = stream.state.tail;
      const outcomes = Array.from({ length: appends }, () => {
        const size = 1 + random.integer(0, random.chance(0.05) ? 5999 : 39);
        const messages = random.integer(1, 4);
        atMs += random.chance(0.3) ? 0 : random.integer(0, 49);
        made.push({ start: tail, end: tail + size, messages, atMs });
        tail += size;
        return append(engine.storage, stream, recordOf(bytesOf(size), { messages, atMs }), tail - size);
      });
      assert.deepEqual([...new Set(await Promise.all(outcomes))], ["durable"]);
      histories.set(name, made);
      return stream;
    };
    const fork = async (source: string, name: string, at: number): Promise<void> => {
      const made = histories.get(source) ?? [];
      const cut = made[at];
      assert.ok(cut !== undefined);
      // In the middle of an append, which then counts with a part of its messages.
      const point = cut.start + Math.ceil((cut.end - cut.start) / 2);
      await forked(engine.storage, await loaded(engine.storage, source), name, point);
      const part = point === cut.end ? cut : { ...cut, end: point, messages: 1 };
      histories.set(name, [...made.slice(0, at), part]);
    };
    const checkAll = async (): Promise<void> => {
      for (const [name, made] of histories) await check(engine.storage, await loaded(engine.storage, name), made);
    };
    await created(engine.storage, "s");
    histories.set("s", []);
    await checkAll();
    await grow("s", 1);
    await checkAll();
    await grow("s", 1500);
    await checkAll();
    await engine.storage.persist(await loaded(engine.storage, "s"));
    await grow("s", 700);
    await checkAll();
    await fork("s", "f", 901);
    await grow("f", 300);
    await fork("f", "g", 1050);
    await fork("f", "h", 300);
    await grow("g", 30);
    await checkAll();
    engine = await reopen(engine);
    await checkAll();
    const source = await grow("s", 20);
    trimBefore(engine.storage, source, Math.floor(source.state.tail / 3));
    await settled(engine.storage, source);
    await checkAll();
    engine = await reopen(engine);
    await checkAll();
  });

  test("of a long stream are found within a few reads", async (t) => {
    const engine = await openEngine({ segmentBytes: 64 * 1024 * 1024, journalBytes: 64 * 1024 * 1024, tailCacheBytes: 64 * 1024 * 1024 });
    t.after(() => engine.storage.close());
    const stream = await created(engine.storage, "s");
    const APPENDS = 200_000;
    for (let at = 0; at < APPENDS; at += 2000) {
      const outcomes = Array.from({ length: 2000 }, (_, index) =>
        append(engine.storage, stream, recordOf(bytesOf(8), { atMs: 1000 + at + index }), (at + index) * 8),
      );
      await Promise.all(outcomes);
    }
    await engine.storage.persist(stream);
    const reads = (): number => engine.files.count("read", /\.idx$/);
    const never = (): null => null;
    // The first search compares the index with its checksum where another process wrote it: here nobody did.
    for (const back of [1, 1234, 77_777, APPENDS - 1]) {
      const before = reads();
      assert.deepEqual(await engine.storage.placeOfLast(stream, back, never), { position: (APPENDS - back) * 8, skip: 0 });
      assert.equal(await engine.storage.placeSince(stream, 1000 + APPENDS - back), (APPENDS - back) * 8);
      assert.ok(reads() - before <= 10, `${reads() - before} reads`);
    }
  });
});
