import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT } from "../../../src/cli/command/verb.js";

test("the exit statuses of the command are what scripts rely on", () => {
  const server = { done: 0, unusable: 1, usage: 64, crash: 70, fault: 74 };
  assert.deepEqual(EXIT, { ...server, refused: 65, missing: 66, unreachable: 69, tryAgain: 75, noRight: 77 });
});
