import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, test } from "node:test";
import {
  NoMajorityError,
  StorageBusyError,
  type ListedStream,
  type Storage,
  type StoredStream,
  type StreamEvents,
  type StreamList,
} from "../../src/storage/storage.js";
import { KEEP_ALL } from "../../src/stream/loaded/retention.js";
import type { StreamContext } from "../../src/stream/loaded/stream.js";
import { NOT_FOUND, TOO_MANY_STREAMS, type Refused } from "../../src/stream/rules/outcome.js";
import { Sweep } from "../../src/stream/sweep.js";
import { configOf, keptLog } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";

interface Swept {
  readonly sweep: Sweep;
  readonly clock: ManualClock;
  readonly looked: string[];
  readonly events: EventEmitter<StreamEvents>;
  readonly lines: readonly { readonly level: string; readonly message: string }[];
}

interface More extends Partial<Pick<StreamContext, "ttlMode" | "retention">> {
  readonly isShared?: boolean;
  readonly maxDueNames?: number;
  readonly find?: (name: string) => Refused;
}

const TRIMMED = { trimExcess: () => undefined };
const MINUTE_MS = 60_000;

function listed(name: string, more: Partial<ListedStream> = {}): ListedStream {
  return { name, config: configOf(), touchedAtMs: 0, tail: 100, isExcess: () => false, ...more };
}

function expiringAt(name: string, expiresAtMs: number): ListedStream {
  return listed(name, { config: configOf({ expiresAtMs }) });
}

function sweepOver(list: () => AsyncIterable<ListedStream>, more: More = {}): Swept {
  const { isShared = false, maxDueNames, find = () => TRIMMED, ...context } = more;
  const clock = new ManualClock(100_000);
  const { log, lines } = keptLog();
  const looked: string[] = [];
  const events = new EventEmitter<StreamEvents>();
  const storage = { list, streamList: { events, isShared } as StreamList } as Storage; // a sweep only lists
  const sweep = new Sweep(
    { storage, clock, ttlMode: "sliding", retention: KEEP_ALL, ...context },
    log,
    (name) => {
      looked.push(name);
      return find(name);
    },
    maxDueNames,
  );
  return { sweep, clock, looked, events, lines };
}

/** A list of `streams`, and how often it was asked for. */
function listOf(streams: readonly ListedStream[]): { count: number; readonly list: () => AsyncGenerator<ListedStream> } {
  const lists = {
    count: 0,
    async *list() {
      lists.count += 1;
      yield* streams;
    },
  };
  return lists;
}

/** Lets `minutes` go by, one at a time. */
async function pass(clock: ManualClock, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    clock.advance(MINUTE_MS);
    for (let turn = 0; turn < 4; turn += 1) await turns();
  }
}

function turns(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("a sweep", () => {
  test("looks at what has expired, half a second after its last noted access at the earliest, and at nothing else", async () => {
    const streams = [
      listed("for ever"),
      listed("old", { config: configOf({ ttlSeconds: 10 }), touchedAtMs: 89_500 }),
      listed("young", { config: configOf({ ttlSeconds: 10 }), touchedAtMs: 89_501 }),
      listed("over", { config: configOf({ expiresAtMs: 100_000 }) }),
    ];
    const { sweep, clock, looked } = sweepOver(async function* () {
      yield* streams;
    });
    sweep.start();
    clock.advance(0);
    await turns();
    assert.deepEqual(looked, ["old", "over"]);
    sweep.stop();
  });

  test("looks at streams of which more is kept than should be", async () => {
    const streams = [listed("short"), listed("long", { isExcess: ({ maxBytes }, nowMs) => maxBytes === 100 && nowMs === 100_000 })];
    const retention = { ...KEEP_ALL, maxBytes: 100 };
    const { sweep, clock, looked } = sweepOver(
      async function* () {
        yield* streams;
      },
      { retention },
    );
    sweep.start();
    clock.advance(0);
    await turns();
    assert.deepEqual(looked, ["long"]);
    sweep.stop();
  });

  for (const [fault, level] of [
    [new StorageBusyError("no leader answers"), "warn"],
    [new Error("the disk is away"), "error"],
  ] as const)
    test(`tells of a ${fault.name} as ${level}`, async () => {
      const { sweep, clock, lines } = sweepOver(async function* () {
        yield listed("a");
        throw fault;
      });
      sweep.start();
      clock.advance(0);
      await turns();
      sweep.stop();
      assert.deepEqual(
        lines.map((line) => line.level),
        [level],
      );
    });

  test("comes again after a minute, also when one was cut short, and not once it is stopped", async () => {
    let lists = 0;
    const { sweep, clock, lines } = sweepOver(async function* () {
      lists += 1;
      yield listed("a");
      throw new Error("the disk is away");
    });
    sweep.start();
    clock.advance(0);
    await turns();
    clock.advance(59_999);
    await turns();
    assert.deepEqual([lists, lines.map(({ message }) => message)], [1, ["the search for what has expired was cut short"]]);
    clock.advance(1);
    await turns();
    assert.equal(lists, 2);
    sweep.stop();
    clock.advance(1e6);
    await turns();
    assert.equal(lists, 2);
  });

  test("comes ever less often, up to an hour apart", async () => {
    const lists = listOf([]);
    const { sweep, clock } = sweepOver(lists.list);
    sweep.start();
    await pass(clock, 0);
    clock.advance(0);
    await turns();
    const counts = [];
    for (const minutes of [2, 2, 4, 8, 16, 32, 60, 60]) {
      await pass(clock, minutes);
      counts.push(lists.count);
    }
    sweep.stop();
    assert.deepEqual(counts, [2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("comes each minute where other servers make and use streams, and at an eighth of the age that is kept", async () => {
    for (const [more, sweeps] of [
      [{ isShared: true }, 61],
      [{ retention: { ...KEEP_ALL, maxAgeMs: 80 * MINUTE_MS } }, 3 + 56 / 10],
    ] as const) {
      const lists = listOf([]);
      const { sweep, clock } = sweepOver(lists.list, more);
      sweep.start();
      clock.advance(0);
      await turns();
      await pass(clock, 60);
      sweep.stop();
      assert.ok(Math.abs(lists.count - sweeps) <= 2, `${lists.count} sweeps`);
    }
  });

  test("remembers what comes due before the next one, also what leaves memory meanwhile", async () => {
    const at = (minutes: number): number => 100_000 + minutes * MINUTE_MS;
    const lists = listOf([expiringAt("one", at(45)), expiringAt("two", at(50))]);
    const { sweep, clock, looked } = sweepOver(lists.list);
    sweep.start();
    clock.advance(0);
    await turns();
    // The sweep that comes after half an hour remembers for as long.
    await pass(clock, 35);
    const sweeps = lists.count;
    sweep.left("three", at(40));
    sweep.left("two", at(55));
    sweep.left("for ever", Infinity);
    assert.deepEqual(looked, []);
    const found = [];
    for (let minutes = 35; minutes < 58; minutes += 1) {
      await pass(clock, 1);
      for (const name of looked.splice(0)) found.push([name, minutes]);
    }
    sweep.stop();
    assert.equal(lists.count, sweeps);
    assert.deepEqual(
      found.map(([name]) => name),
      ["three", "one", "two"],
    );
    for (const [index, minute] of [40, 45, 55].entries()) assert.ok(Math.abs(Number(found[index]?.[1]) - minute) <= 2, String(found));
  });

  test("looks again a minute later where there was no room, and not at what is gone", async () => {
    const { sweep, clock, looked } = sweepOver(listOf([expiringAt("gone", 90_000), expiringAt("waits", 90_000)]).list, {
      find: (name) => (name === "waits" ? TOO_MANY_STREAMS : NOT_FOUND),
    });
    sweep.start();
    clock.advance(0);
    await turns();
    await pass(clock, 1);
    assert.deepEqual(looked.splice(0), ["gone", "waits", "gone", "waits"]);
    await pass(clock, 3);
    assert.deepEqual(looked.splice(0, 3), ["waits", "gone", "waits"]);
    sweep.stop();
  });

  for (const [faults, messages] of [
    [1, ["a stream was passed over by the search for what has expired"]],
    [10, new Array(10).fill("a stream was passed over by the search for what has expired")],
    [
      30,
      [
        ...new Array(10).fill("a stream was passed over by the search for what has expired"),
        "more streams were passed over by the search for what has expired",
      ],
    ],
  ] as const)
    test(`passes over ${faults} at which there is a fault, and looks again a minute later`, async () => {
      const broken = Array.from({ length: faults - 1 }, (_, index) => expiringAt(`broken ${index}`, 90_000));
      const unread = listed("unread", { isExcess: () => Promise.reject(new Error("EIO")) });
      let isMended = false;
      const { sweep, clock, looked, lines } = sweepOver(listOf([unread, ...broken, expiringAt("sound", 90_000)]).list, {
        retention: { ...KEEP_ALL, maxBytes: 100 },
        find(name) {
          if (name === "sound" || isMended) return NOT_FOUND;
          throw new Error("a fault");
        },
      });
      sweep.start();
      clock.advance(0);
      await turns();
      assert.equal(looked.at(-1), "sound");
      assert.equal(looked.length, faults);
      assert.deepEqual(
        lines.map(({ message }) => message),
        messages,
      );
      assert.equal(sweep.figures.sweeps, 1);
      isMended = true;
      await pass(clock, 1);
      assert.deepEqual(new Set(looked.slice(faults)), new Set([...broken, { name: "sound" }].map(({ name }) => name)));
      sweep.stop();
    });

  test("goes on behind streams of a part of a cluster that does not answer, and tells that once", async () => {
    const streams = ["silent 1", "silent 2", "sound"].map((name) => expiringAt(name, 90_000));
    const { sweep, clock, looked, lines } = sweepOver(listOf(streams).list, {
      isShared: true,
      find(name) {
        if (name === "sound") return NOT_FOUND;
        throw new NoMajorityError("no leader answers for SD_chats_1");
      },
    });
    sweep.start();
    clock.advance(0);
    await turns();
    assert.deepEqual(looked, ["silent 1", "silent 2", "sound"]);
    assert.deepEqual(
      lines.map(({ level, message }) => `${level} ${message}`),
      ["warn the search for what has expired was cut short"],
    );
    sweep.stop();
  });

  test("comes earlier where it can't remember all that comes due", async () => {
    const left = new Map(Array.from({ length: 100 }, (_, index) => [String(index), 100_000 + (40 + index) * MINUTE_MS]));
    let lists = 0;
    const { sweep, clock, looked } = sweepOver(
      async function* () {
        lists += 1;
        for (const [name, dueMs] of left) yield expiringAt(name, dueMs);
      },
      {
        maxDueNames: 10,
        find(name) {
          left.delete(name);
          return NOT_FOUND;
        },
      },
    );
    sweep.start();
    clock.advance(0);
    await turns();
    const lateBy: number[] = [];
    for (let minute = 1; minute < 200; minute += 1) {
      await pass(clock, 1);
      for (const name of looked.splice(0)) lateBy.push(minute - 40 - Number(name));
    }
    sweep.stop();
    assert.deepEqual([lateBy.length, left.size], [100, 0]);
    assert.ok(lists < 40, `${lists} sweeps`);
    assert.ok(
      lateBy.every((late) => late >= 0 && late <= 3),
      String(lateBy),
    );
  });

  test("counts what stays, whatever is made and deleted meanwhile", async () => {
    const swept = sweepOver(async function* () {
      yield listed("stays");
      for (let made = 0; made < 10; made += 1) {
        swept.events.emit("created", {} as StoredStream); // it only counts
        swept.events.emit("deleted", `made ${made}`);
      }
      yield listed("stays too");
    });
    swept.sweep.start();
    swept.clock.advance(0);
    await turns();
    assert.equal(swept.sweep.figures.streams, 2);
    swept.sweep.stop();
  });

  test("counts none that it has found to be over", async () => {
    const over = ["over 1", "over 2", "over 3"];
    const swept = sweepOver(listOf([...over.map((name) => expiringAt(name, 1)), listed("stays")]).list, {
      find(name) {
        // The last one is deleted later than the sweep ends.
        if (name !== "over 3") swept.events.emit("deleted", name);
        return NOT_FOUND;
      },
    });
    const { sweep, clock, events } = swept;
    sweep.start();
    clock.advance(0);
    await turns();
    events.emit("deleted", "over 3");
    assert.equal(sweep.figures.streams, 1);
    sweep.stop();
  });

  test("knows how many streams there are, between two as well", async () => {
    const { sweep, clock, events } = sweepOver(listOf([listed("a"), listed("b")]).list);
    sweep.start();
    events.emit("deleted", "before the first");
    assert.equal(sweep.figures.streams, null);
    clock.advance(0);
    await turns();
    assert.equal(sweep.figures.streams, 2);
    for (let made = 0; made < 3; made += 1) events.emit("created", {} as StoredStream); // it only counts
    events.emit("deleted", "a");
    assert.equal(sweep.figures.streams, 4);
    sweep.stop();
    assert.deepEqual(events.eventNames(), []);
  });
});
