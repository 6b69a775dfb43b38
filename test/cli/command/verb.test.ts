import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT } from "../../../src/cli/command/verb.js";

test("the exit statuses of the command are what scripts rely on", () => {
  assert.deepEqual(EXIT, { done: 0, unusable: 1, usage: 64, crash: 70, fault: 74 });
});
