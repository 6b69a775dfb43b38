import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inheritedListen } from "../../../src/cli/systemd/socket-activation.js";

describe("the sockets that were passed to a process", () => {
  const cases: readonly [env: Record<string, string>, listen: string | null][] = [
    [{ LISTEN_PID: "7", LISTEN_FDS: "1" }, "fd:3"],
    [{ LISTEN_PID: "7", LISTEN_FDS: "3" }, "fd:3,fd:4,fd:5"],
    [{}, null],
    [{ LISTEN_FDS: "1" }, null],
    [{ LISTEN_PID: "7" }, null],
    [{ LISTEN_PID: "8", LISTEN_FDS: "1" }, null],
    [{ LISTEN_PID: "7", LISTEN_FDS: "0" }, null],
    [{ LISTEN_PID: "7", LISTEN_FDS: "65" }, null],
    [{ LISTEN_PID: "7", LISTEN_FDS: "1x" }, null],
    [{ LISTEN_PID: "7", LISTEN_FDS: "-1" }, null],
  ];
  for (const [env, listen] of cases) {
    test(`of ${JSON.stringify(env)} are ${listen ?? "none"} for process 7`, () => assert.equal(inheritedListen(env, 7), listen));
  }
});
