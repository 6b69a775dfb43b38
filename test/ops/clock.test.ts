import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import { startNode } from "../helpers/process.js";

const CLOCK = JSON.stringify(new URL("../../src/ops/clock.ts", import.meta.url));

describe("the system's clock", () => {
  test("reads the time of the system, and never goes back", (t) => {
    const readings = [1000, 1005, 900, 1004, 1006];
    t.mock.method(Date, "now", () => readings.shift() ?? 0);
    const clock = systemClock();
    assert.deepEqual(
      [1, 2, 3, 4, 5].map(() => clock.nowMs()),
      [1000, 1005, 1005, 1005, 1006],
    );
  });

  test("calls back once, after the delay", async () => {
    const fired = new EventTarget();
    const startedMs = performance.now();
    systemClock().after(20, () => fired.dispatchEvent(new Event("fired")));
    const keepAlive = setInterval(() => {}, 1000);
    await once(fired, "fired");
    clearInterval(keepAlive);
    assert.ok(performance.now() - startedMs >= 19);
  });

  test("takes a call back", (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const calls: string[] = [];
    const clock = systemClock();
    const first = clock.after(10, () => calls.push("first"));
    clock.after(10, () => calls.push("second"));
    first.cancel();
    t.mock.timers.tick(10);
    first.cancel();
    assert.deepEqual(calls, ["second"]);
  });

  test("waits as long as it can where the delay is longer than a timer keeps", (t) => {
    const { mock } = t.mock.method(globalThis, "setTimeout");
    systemClock()
      .after(Number.MAX_SAFE_INTEGER, () => {})
      .cancel();
    assert.equal(mock.calls[0]?.arguments[1], 2 ** 31 - 1);
  });

  test("keeps no process alive", async (t) => {
    const program = `import(${CLOCK}).then(({ systemClock }) => systemClock().after(3_600_000, () => {}))`;
    const { status, stderr } = await startNode(t, ["--import", import.meta.resolve("tsx"), "-e", program]).ended;
    assert.deepEqual([status, stderr], [0, ""]);
  });
});
