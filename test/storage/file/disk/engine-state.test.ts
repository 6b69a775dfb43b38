import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineState } from "../../../../src/storage/file/disk/engine-state.js";
import { keptLog, type LogLine } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

interface Watched {
  readonly state: EngineState;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly told: string[];
}

function watched(): Watched {
  const clock = new ManualClock();
  const { log, lines } = keptLog();
  const told: string[] = [];
  const state = new EngineState({ clock, log }, ({ message }) => told.push(`fault ${message}`));
  state.on("phase", () => told.push(phaseOf(state)));
  return { state, clock, log: lines, told };
}

function phaseOf({ isRunning, isOver, failure }: EngineState): string {
  return failure !== null ? "failed" : isRunning ? "running" : isOver ? "stopped" : "ending";
}

describe("the state of the engine", () => {
  test("goes from running by ending to stopped, and never back", () => {
    const { state, told } = watched();
    assert.equal(phaseOf(state), "running");
    state.end();
    state.end();
    state.stop();
    state.stop();
    state.end();
    assert.deepEqual(told, ["ending", "stopped"]);
  });

  test("fails once, from any phase, and stays failed", () => {
    for (const before of ["running", "ending", "stopped"]) {
      const { state, told, log } = watched();
      if (before !== "running") state.end();
      if (before === "stopped") state.stop();
      told.length = 0;
      state.fail(new Error("EIO"));
      state.fail("something else");
      state.end();
      state.stop();
      assert.deepEqual([told, state.failure?.message, state.isOver], [["failed", "fault EIO"], "EIO", true], before);
      assert.deepEqual(
        log.map(({ message, fields }) => [message, fields]),
        [["the disk failed: nothing is written any more", { fault: "EIO" }]],
      );
    }
  });

  test("takes what is no error for one", () => {
    const { state, told } = watched();
    state.fail("no words");
    assert.deepEqual(told, ["failed", "fault no words"]);
  });

  test("brings each pending try forward when the phase changes, after it has told of that", () => {
    const { state, clock, told } = watched();
    const [first, second] = [state.retry(), state.retry()];
    first.after(1000, () => told.push("first"));
    second.after(2000, () => told.push("second"));
    state.end();
    assert.deepEqual(told, ["ending", "first", "second"]);
    first.after(1000, () => told.push("again"));
    clock.advance(1000);
    assert.equal(told.at(-1), "again");
  });
});
