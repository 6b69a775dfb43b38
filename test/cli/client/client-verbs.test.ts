import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { CLIENT_VERBS } from "../../../src/cli/client/client-verbs.js";
import { loneTaskHelp } from "../../../src/cli/command/task-help.js";

test("the verbs are named once, and their flags too", () => {
  const names = CLIENT_VERBS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { name, flags } of CLIENT_VERBS) {
    const known = flags.flatMap(({ flag, short }) => (short === undefined ? [flag] : [flag, short]));
    assert.equal(new Set(known).size, known.length, name);
    assert.ok(known.includes("server") && known.includes("json"), name);
  }
});

describe("the help of each verb fits 100 columns:", () => {
  for (const task of CLIENT_VERBS)
    test(task.name, () => {
      const lines = loneTaskHelp(task).split("\n");
      assert.deepEqual(
        lines.filter((line) => line.length > 100),
        [],
      );
      assert.match(lines[0] ?? "", new RegExp(`^Usage: streamdir ${task.name}( |$)`));
    });
});
