import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineState } from "../../../../src/storage/file/disk/engine-state.js";
import { CatchUp } from "../../../../src/storage/file/recovery/catch-up.js";
import { DamagedStreamError, StorageBusyError } from "../../../../src/storage/storage.js";
import { keptLog } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { diskError } from "../../../helpers/watched-files.js";

interface Opening {
  readonly catchUp: CatchUp;
  readonly clock: ManualClock;
  readonly state: EngineState;
  readonly opened: string[];
  readonly faults: Error[];
  /** What it said that keeps it from a stream. */
  readonly told: string[];
}

/** `failing` gives what goes wrong with a stream, as long as something does. */
function opening(failing: (name: string) => Error | undefined = () => undefined, clock = new ManualClock()): Opening {
  const opened: string[] = [];
  const faults: Error[] = [];
  const open = async (name: string): Promise<void> => {
    const error = failing(name);
    if (error !== undefined) throw error;
    opened.push(name);
  };
  const told: string[] = [];
  const state = new EngineState({ clock, log: keptLog().log, onFault: (error) => faults.push(error) }).on("blocked", ({ message }) => told.push(message));
  return { clock, state, opened, faults, told, catchUp: new CatchUp(state, open) };
}

const NAMES = Array.from({ length: 100 }, (_, index) => `s${index}`);

async function turn(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

describe("catching up", () => {
  test("opens all streams, and lets others have their turn between", async () => {
    const { catchUp, opened } = opening();
    const done = catchUp.run(NAMES.values());
    await Promise.resolve();
    await turn();
    assert.ok(opened.length > 0 && opened.length < NAMES.length, `${opened.length} in the first turn`);
    assert.equal(await done, true);
    assert.deepEqual(opened.toSorted(), NAMES.toSorted());
  });

  test("passes over a damaged stream", async () => {
    const { catchUp, opened, faults } = opening((name) => (name === "s1" ? new DamagedStreamError(name, "file", "it is missing") : undefined));
    assert.equal(await catchUp.run(NAMES.values()), true);
    assert.deepEqual([opened.length, faults], [99, []]);
  });

  test("tries again what can't be opened now", async () => {
    let isBusy = true;
    const { catchUp, clock, opened } = opening((name) => (isBusy && name === "s3" ? new StorageBusyError("too many files") : undefined));
    const done = catchUp.run(NAMES.values());
    while (opened.length < 99) await turn();
    clock.advance(100);
    await turn();
    assert.equal(opened.length, 99);
    isBusy = false;
    clock.advance(100);
    assert.equal(await done, true);
    assert.equal(opened.at(-1), "s3");
  });

  for (const { name, skewMs } of SKEWS) {
    test(`tries again what can't be opened now whenever the timer fires, ${name}`, async () => {
      let isBusy = true;
      const { catchUp, clock, opened, told } = opening((name) => (isBusy && name.startsWith("s3") ? new StorageBusyError("busy") : undefined), new SkewedClock(skewMs));
      const done = catchUp.run(NAMES.values());
      while (told.length < 8) await turn();
      isBusy = false;
      clock.advance(Math.max(0, 100 + skewMs));
      assert.equal(await done, true);
      assert.equal(opened.length, 100);
    });
  }

  test("says what keeps it from a stream", async () => {
    let isFull = true;
    const tried = opening((name) => (isFull && name === "s3" ? new StorageBusyError("no room", { cause: diskError("ENOSPC") }) : undefined));
    const done = tried.catchUp.run(NAMES.values());
    while (tried.opened.length < 99) await turn();
    assert.deepEqual(tried.told, ["ENOSPC: as the test wants it"]);
    isFull = false;
    tried.clock.advance(100);
    assert.equal(await done, true);
  });

  test("leaves that to the next start when the engine closes", async () => {
    const { catchUp, state, opened, faults } = opening((name) => (name === "s3" ? new StorageBusyError("too many files") : undefined));
    const done = catchUp.run(NAMES.values());
    while (opened.length < 99) await turn();
    state.end();
    assert.equal(await done, false);
    assert.deepEqual(faults, []);
  });

  test("ends with a disk that fails, which is told of", async () => {
    const { catchUp, opened, faults } = opening((name) => (name === "s40" ? new Error("EIO") : undefined));
    assert.equal(await catchUp.run(NAMES.values()), false);
    assert.deepEqual(faults.map(({ message }) => message), ["EIO"]);
    assert.ok(opened.length < 60);
  });

  test("begins nothing new once it is stopped", async () => {
    const { catchUp, state, opened } = opening();
    const done = catchUp.run(NAMES.values());
    state.stop();
    assert.equal(await done, false);
    assert.ok(opened.length < 10);
  });
});
