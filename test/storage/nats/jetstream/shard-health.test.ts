import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ShardHealth, type ShardHealthOptions } from "../../../../src/storage/nats/jetstream/shard-health.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

/** What is asked stays without an answer, unless the test gives one. */
function healthOf(clock: ManualClock, more: Partial<ShardHealthOptions> = {}): ShardHealth {
  return new ShardHealth({
    shards: ["a", "b"],
    clock,
    ask: async () => null,
    connectionFault: () => null,
    refusalOf: () => null,
    isRefused: () => false,
    onAllSilent: () => {},
    onRefused: () => true,
    onLed: () => {},
    onMissing: () => {},
    patienceMs: 5000,
    nowMs: () => clock.nowMs(),
    ...more,
  });
}

describe("the health of shards", () => {
  test("asks those of which nothing was heard, and names those that stay silent", async () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const health = healthOf(clock, {
      ask: async (shard) => {
        asked.push(shard);
        return null;
      },
    });
    clock.advance(500);
    health.held("a", clock.nowMs());
    clock.advance(500);
    assert.deepEqual(asked, ["b"]);
    assert.deepEqual(health.health, { writable: true, reason: null });
    for (let second = 0; second < 4; second += 1) {
      clock.advance(1000);
      health.held("a", clock.nowMs());
    }
    assert.deepEqual(health.health, { writable: false, reason: "no leader answers for b" });
    health.held("b", clock.nowMs());
    assert.deepEqual(health.health, { writable: true, reason: null });
    health.stop();
  });

  test("asks about each twice a minute however much is heard of it: it may have been made anew", async () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const ask = async (shard: string): Promise<null> => {
      asked.push(shard);
      return null;
    };
    const health = healthOf(clock, { ask });
    for (let second = 0; second < 60; second += 1) {
      for (const shard of ["a", "b"]) health.held(shard, clock.nowMs() + 1);
      clock.advance(1000);
      await new Promise(setImmediate);
    }
    assert.deepEqual(asked, ["a", "b", "a", "b"]);
    health.stop();
  });

  test("asks about what is refused however much is heard of it", () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const ask = async (shard: string): Promise<null> => {
      asked.push(shard);
      return null;
    };
    const health = healthOf(clock, { ask, isRefused: (shard) => shard === "a" });
    for (const shard of ["a", "b"]) health.held(shard, clock.nowMs() + 1);
    clock.advance(1000);
    assert.deepEqual(asked, ["a"]);
    health.stop();
  });

  test("says at once that no server is connected", () => {
    const health = healthOf(new ManualClock(), { connectionFault: () => "nobody is connected" });
    assert.deepEqual(health.health, { writable: false, reason: "nobody is connected" });
    health.stop();
  });

  test("takes an answer for a leader's as long as a majority was behind it less than an election ago", async () => {
    const clock = new ManualClock();
    const answers: (number | null)[] = [];
    const health = healthOf(clock, { ask: async () => answers.shift() ?? null });
    health.held("a", clock.nowMs());
    clock.advance(3000);
    assert.equal(await health.wasLed("a", clock.nowMs()), true);
    clock.advance(1);
    // Nobody says so, or only that it was long ago: it may be cut off, and the others have another.
    answers.push(null, 3500);
    assert.equal(await health.wasLed("a", clock.nowMs()), false);
    answers.push(900);
    assert.equal(await health.wasLed("a", clock.nowMs()), true);
    assert.equal(answers.length, 0);
    clock.advance(2100);
    assert.equal(await health.wasLed("a", clock.nowMs()), true);
    health.stop();
  });

  test("says that no shard has a majority any more, and says it again while that is so", () => {
    const clock = new ManualClock();
    const calls: boolean[] = [];
    const health = healthOf(clock, { onAllSilent: (isFirst) => calls.push(isFirst) });
    const pass = (seconds: number): void => {
      for (let second = 0; second < seconds; second += 1) clock.advance(1000);
    };
    pass(5);
    health.held("b", clock.nowMs());
    pass(6);
    assert.deepEqual(calls, [], "one shard was led until now");
    pass(1);
    assert.deepEqual(calls, [true]);
    pass(6);
    assert.deepEqual(calls, [true]);
    pass(1);
    assert.deepEqual(calls, [true, false]);
    health.held("a", clock.nowMs());
    pass(7);
    assert.deepEqual(calls, [true, false, true]);
    health.stop();
  });

  test("tells once that a shard has no leader, and once that it has one again", () => {
    const clock = new ManualClock();
    const told: string[] = [];
    const health = healthOf(clock, { onLed: (shard, isLed) => told.push(`${shard} ${isLed}`) });
    const pass = (seconds: number): void => {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1000);
        health.held("a", clock.nowMs());
      }
    };
    pass(4);
    assert.deepEqual(told, []);
    pass(10);
    assert.deepEqual(told, ["b false"]);
    health.held("b", clock.nowMs());
    pass(1);
    assert.deepEqual(told, ["b false", "b true"]);
    health.stop();
  });

  test("tells once that a shard is gone, and that it is there again, and leaves no server for it", async () => {
    const clock = new ManualClock();
    const told: string[] = [];
    let standing: number | "missing" | null = "missing";
    const health = healthOf(clock, {
      shards: ["a"],
      ask: async () => standing,
      onLed: (shard, isLed) => told.push(`${shard} ${isLed}`),
      onMissing: (shard) => told.push(`${shard} is missing`),
      onAllSilent: () => told.push("all silent"),
    });
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1000);
        await new Promise(setImmediate);
      }
    };
    await pass(10);
    assert.deepEqual(told, ["a is missing"]);
    const reason = "the NATS servers have no a: restore it from a backup before any front end starts";
    assert.deepEqual(health.health, { writable: false, reason });
    // An answer that is lost takes nothing back, and is no reason to leave; a server that stays silent is left.
    standing = null;
    await pass(5);
    assert.deepEqual(told, ["a is missing"]);
    assert.equal(health.health.reason, "no leader answers for a");
    await pass(5);
    assert.deepEqual(told, ["a is missing", "all silent"]);
    standing = 0;
    await pass(2);
    assert.deepEqual(told, ["a is missing", "all silent", "a true"]);
    assert.deepEqual(health.health, { writable: true, reason: null });
    health.stop();
  });

  test("tells of no shard that could not be asked, and of one only after that long", () => {
    const clock = new ManualClock();
    const told: string[] = [];
    let fault: string | null = "nobody is connected";
    const health = healthOf(clock, { onLed: (shard, isLed) => told.push(`${shard} ${isLed}`), connectionFault: () => fault });
    const pass = (seconds: number): void => {
      for (let second = 0; second < seconds; second += 1) clock.advance(1000);
    };
    pass(10);
    fault = null;
    pass(4);
    assert.deepEqual(told, []);
    pass(1);
    assert.deepEqual(told, ["a false", "b false"]);
    // It stays as it was told while nobody can be asked.
    fault = "nobody is connected";
    pass(1);
    fault = null;
    pass(3);
    assert.deepEqual(told, ["a false", "b false"]);
    health.stop();
  });

  test("names what the user may not ask, looks for another server only for what it may, and misses a leader only once it may", () => {
    const clock = new ManualClock();
    const told: string[] = [];
    let refusal: string | null = "a violation";
    let isRefusedAll = false;
    const onLed = (shard: string, isLed: boolean): void => void told.push(`${shard} ${isLed}`);
    const onAllSilent = (): void => void told.push("all silent");
    const health = healthOf(clock, { onLed, onAllSilent, refusalOf: (shard) => (shard === "a" || isRefusedAll ? refusal : null) });
    const pass = (seconds: number): void => {
      for (let second = 0; second < seconds; second += 1) clock.advance(1000);
    };
    pass(10);
    assert.deepEqual(told.splice(0), ["b false", "all silent"]);
    assert.deepEqual(health.health, { writable: false, reason: "a violation" });
    health.held("b", clock.nowMs());
    isRefusedAll = true;
    pass(10);
    assert.deepEqual(told.splice(0), []);
    isRefusedAll = false;
    refusal = null;
    pass(4);
    assert.deepEqual(health.health, { writable: false, reason: "no leader answers for a, b" });
    assert.deepEqual(told, []);
    pass(3);
    assert.deepEqual(told, ["a false", "all silent"]);
    health.stop();
  });

  test("looks for a server that refuses less, once in a while for as long as each refuses something", () => {
    const clock = new ManualClock();
    const calls: (readonly [number, boolean])[] = [];
    let isRefused = true;
    let isAnotherKnown = true;
    let fault: string | null = null;
    const beganMs = clock.nowMs();
    const health = healthOf(clock, {
      connectionFault: () => fault,
      isRefused: (shard) => isRefused && shard === "b",
      onRefused: (isFirst) => {
        if (isAnotherKnown) calls.push([(clock.nowMs() - beganMs) / 1000, isFirst]);
        return isAnotherKnown;
      },
    });
    const pass = (seconds: number): void => {
      for (let second = 0; second < seconds; second += 1) {
        for (const shard of ["a", "b"]) health.held(shard, clock.nowMs());
        clock.advance(1000);
      }
    };
    pass(70);
    assert.deepEqual(calls.splice(0), [
      [7, true],
      [37, false],
      [67, false],
    ]);
    // On the way to the next nothing is known of what it refuses.
    isRefused = false;
    fault = "nobody is connected";
    pass(2);
    isRefused = true;
    fault = null;
    pass(28);
    assert.deepEqual(calls.splice(0), [[97, false]]);
    isRefused = false;
    pass(1);
    isRefused = true;
    isAnotherKnown = false;
    pass(19);
    isAnotherKnown = true;
    pass(1);
    assert.deepEqual(calls, [[121, true]], "as soon as another is known");
    health.stop();
  });

  test("who may not ask about a stream asks for it once a second", async () => {
    const clock = new ManualClock();
    let questions = 0;
    const ask = async (): Promise<null> => {
      questions += 1;
      return null;
    };
    const health = healthOf(clock, { ask, shards: [], refusalOf: () => "a violation" });
    const waiting = health.untilLed("a");
    for (let look = 0; look < 50; look += 1) await lookAgain(clock);
    assert.equal(await waiting, false);
    assert.ok(questions <= 2 * 5 + 1, `${questions} questions`);
    health.stop();
  });

  test("those who ask about one stream at a time share a question, and ask again where that was too early", async () => {
    const clock = new ManualClock();
    const waiting: ((agoMs: number | null) => void)[] = [];
    const health = healthOf(clock, { ask: () => new Promise((resolve) => waiting.push(resolve)) });
    const first = health.wasLed("c", clock.nowMs());
    clock.advance(3500);
    const second = health.wasLed("c", clock.nowMs());
    const [questionOfC] = waiting;
    questionOfC?.(0);
    assert.equal(await first, true);
    await new Promise(setImmediate);
    waiting.at(-1)?.(0);
    assert.equal(await second, true);
    health.stop();
  });

  test("requests wait for the next leader of a stream together, and a publish that it took tells them too", async () => {
    const clock = new ManualClock();
    const answers: (number | null)[] = [null, null, 0];
    let questions = 0;
    const ask = async (): Promise<number | null> => {
      questions += 1;
      return answers.shift() ?? null;
    };
    const health = healthOf(clock, { ask, shards: [] });
    health.held("a", clock.nowMs());
    clock.advance(1);
    const both = [health.untilLed("a"), health.untilLed("a")];
    for (let look = 0; look < 2; look += 1) await lookAgain(clock);
    assert.deepEqual(await Promise.all(both), [true, true]);
    assert.equal(questions, 3);

    // What it says of a time before is no news: a leader that was cut off says the same for long.
    answers.push(2, null);
    const published = health.untilLed("a");
    await lookAgain(clock);
    health.held("a", clock.nowMs() + 1);
    await lookAgain(clock);
    assert.equal(await published, true);
    health.stop();
  });

  test("nobody waits for longer than an election takes, nor any more after that until there is a leader again", async () => {
    const clock = new ManualClock();
    const answers: (number | null)[] = [];
    let questions = 0;
    const ask = async (): Promise<number | null> => {
      questions += 1;
      return answers.shift() ?? null;
    };
    const health = healthOf(clock, { ask, shards: [], patienceMs: 1000 });
    const waiting = health.untilLed("a");
    for (let look = 0; look < 10; look += 1) await lookAgain(clock);
    assert.equal(await waiting, false);
    assert.equal(health.isGivenUp("a"), true);
    const asked = questions;
    assert.equal(await health.untilLed("a"), false);
    assert.equal(questions, asked, "nobody asks for a request any more");

    // It is asked for each second, also where it is no shard.
    answers.push(0);
    await lookAgain(clock, 1000);
    assert.equal(questions, asked + 1);
    assert.equal(health.isGivenUp("a"), false);
    answers.push(0);
    assert.equal(await health.untilLed("a"), true);
    health.stop();
    const stopped = health.untilLed("a");
    assert.equal(await stopped, false, "it is closed");
  });
});

/** Lets answers come, and the next question go out. */
async function lookAgain(clock: ManualClock, afterMs = 100): Promise<void> {
  await new Promise(setImmediate);
  clock.advance(afterMs);
  await new Promise(setImmediate);
}
