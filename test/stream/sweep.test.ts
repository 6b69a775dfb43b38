import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StorageBusyError, type ListedStream, type Storage } from "../../src/storage/storage.js";
import { KEEP_ALL } from "../../src/stream/loaded/retention.js";
import type { StreamContext } from "../../src/stream/loaded/stream.js";
import { Sweep } from "../../src/stream/sweep.js";
import { configOf, keptLog } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";

interface Swept {
  readonly sweep: Sweep;
  readonly clock: ManualClock;
  readonly looked: string[];
  readonly lines: readonly { readonly level: string; readonly message: string }[];
}

function listed(name: string, more: Partial<ListedStream> = {}): ListedStream {
  return { name, config: configOf(), touchedAtMs: 0, tail: 100, isExcess: () => false, ...more };
}

function sweepOver(list: () => AsyncIterable<ListedStream>, more: Partial<Pick<StreamContext, "ttlMode" | "retention">> = {}): Swept {
  const clock = new ManualClock(100_000);
  const { log, lines } = keptLog();
  const looked: string[] = [];
  const storage = { list } as Storage; // a sweep only lists
  const context = { storage, clock, ttlMode: "sliding" as const, retention: KEEP_ALL, ...more };
  const sweep = new Sweep(context, log, (name) => void looked.push(name));
  return { sweep, clock, looked, lines };
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
});
