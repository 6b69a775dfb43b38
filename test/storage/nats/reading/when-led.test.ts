import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LogUnavailableError } from "../../../../src/storage/nats/log/replicated-log.js";
import { whenLed } from "../../../../src/storage/nats/reading/when-led.js";
import { MemoryCluster, MemoryLog } from "../../../helpers/memory-log.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

/** A log whose parts have leaders again, or not, as `waits` says in turn; the parts that were waited for are kept. */
class ElectingLog extends MemoryLog {
  readonly waitedFor: string[] = [];
  readonly #waits: boolean[];

  constructor(waits: boolean[]) {
    super(new MemoryCluster(), new ManualClock(), () => 0);
    this.#waits = waits;
  }

  override async untilLed(part = ""): Promise<boolean> {
    this.waitedFor.push(part);
    return this.#waits.shift() ?? false;
  }
}

/** Fails so often, by the parts that have no leader, and answers then. */
function answerAfter(...parts: string[]): () => Promise<string> {
  return async () => {
    const part = parts.shift();
    if (part !== undefined) throw new LogUnavailableError("no leader", part);
    return "answer";
  };
}

describe("what is asked of a log", () => {
  test("is asked again once the part without a leader has one", async () => {
    const log = new ElectingLog([true, true]);
    assert.equal(await whenLed(log, answerAfter("a", "touch")), "answer");
    assert.deepEqual(log.waitedFor, ["a", "touch"]);
  });

  test("counts what was asked already", async () => {
    const log = new ElectingLog([true]);
    const ask = answerAfter("a");
    assert.equal(await whenLed(log, ask, ask()), "answer");
    assert.equal(await whenLed(log, answerAfter("b"), Promise.resolve("first")), "first");
    assert.deepEqual(log.waitedFor, ["a"]);
  });

  test("fails as it did when no leader comes, when one leader after the other is lost, and by another fault at once", async () => {
    const unavailable = { name: "LogUnavailableError", part: "a" };
    const patient = new ElectingLog([true, true, true, true, true]);
    await assert.rejects(whenLed(patient, answerAfter("a", "a", "a", "a", "a")), unavailable);
    assert.equal(patient.waitedFor.length, 3);
    const leaderless = new ElectingLog([false]);
    await assert.rejects(whenLed(leaderless, answerAfter("a")), unavailable);
    assert.equal(leaderless.waitedFor.length, 1);
    const fault = new RangeError("a fault");
    await assert.rejects(
      whenLed(leaderless, () => Promise.reject(fault)),
      fault,
    );
    assert.equal(leaderless.waitedFor.length, 1);
  });
});
