import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import test, { describe } from "node:test";
import { endByUnheardSignals, listenForStop } from "../../../src/cli/command/stop-signals.js";

/** A process that hears signals, at times of the test. */
function listening(env: Readonly<Record<string, string>> = {}) {
  const signals = new EventEmitter();
  const seen: (string | number)[] = [];
  let nowMs = 0;
  const output = { write: () => {} };
  const surroundings = Object.assign(signals, { env, stdout: output, stderr: output, exit: (status: number) => void seen.push(status) });
  const stop = listenForStop(surroundings, { nowMs: () => nowMs }, ["SIGINT", "SIGTERM"], (signal) => seen.push(signal));
  const send = (signal: string, atMs: number): void => {
    nowMs = atMs;
    signals.emit(signal, signal);
  };
  return { send, seen, stop, signals };
}

describe("of the signals that stop a command,", () => {
  test("the first asks, and the second ends the process with its own status", () => {
    const { send, seen } = listening();
    send("SIGINT", 0);
    send("SIGTERM", 1);
    assert.deepEqual(seen, ["SIGINT", 143]);
  });

  test("the second SIGINT within a moment is npm's copy of the first", () => {
    const { send, seen } = listening({ npm_command: "exec" });
    for (const atMs of [0, 100, 200]) send("SIGINT", atMs);
    assert.deepEqual(seen, ["SIGINT", 130]);
  });

  test("none is heard once they are released", () => {
    const { send, seen, stop, signals } = listening();
    stop.release();
    send("SIGINT", 0);
    assert.deepEqual([seen, signals.eventNames()], [[], []]);
  });
});

describe("signals that nobody listens for", () => {
  test("end the first process of a container, and no sooner than whoever listened has done", () => {
    const seen: (string | number)[] = [];
    const first = Object.assign(new EventEmitter(), { pid: 1, exit: (status: number) => void seen.push(status) });
    endByUnheardSignals(first);
    const listener = (signal: string): void => void seen.push(signal);
    first.on("SIGTERM", listener);
    for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) first.emit(signal, signal);
    first.off("SIGTERM", listener);
    first.emit("SIGTERM", "SIGTERM");
    assert.deepEqual(seen, [129, 130, 131, "SIGTERM", 143]);
  });

  test("are left to the system by any other process", () => {
    const other = Object.assign(new EventEmitter(), { pid: 2, exit: () => assert.fail() });
    endByUnheardSignals(other);
    assert.deepEqual(other.eventNames(), []);
  });
});
