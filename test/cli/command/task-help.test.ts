import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { loneTaskHelp, taskHelp } from "../../../src/cli/command/task-help.js";
import { TOKEN } from "../../../src/cli/token.js";

describe("the help of a tool", () => {
  test("fits 100 columns, as that of each of its tasks does", () => {
    for (const text of [null, ...TOKEN.tasks].map((task) => taskHelp(TOKEN, task)))
      for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
  });

  test("lists its tasks", () => {
    const lines = taskHelp(TOKEN, null).split("\n");
    assert.equal(lines[0], "Usage: streamdir token COMMAND [flags]");
    for (const { name, summary } of TOKEN.tasks) assert.ok(lines.includes(`  ${name.padEnd(24)}${summary}`), name);
  });

  test("has the flags of a task, with what must be given first", () => {
    const [add] = TOKEN.tasks;
    assert.ok(add !== undefined);
    const text = taskHelp(TOKEN, add);
    assert.match(text, /^Usage: streamdir token add --auth FILE --id ID --allow OPS --streams PATTERNS \[flags\]\n\nMake a token/);
    assert.match(text, /^ {2}--expires TIME {10}for how long/m);
    assert.match(text, /^ {26}STREAMDIR_AUTH also sets it$/m);
  });
});

test("the help of a task without a tool begins with its words", () => {
  const words = [
    { placeholder: "WHO", isRequired: true },
    { placeholder: "WHERE", isRequired: false },
  ];
  const flags = [
    { flag: "times", short: "n", kind: "integer" as const, placeholder: "N", isRequired: false, env: null, help: "how often" },
  ];
  const lines = loneTaskHelp({ name: "wave", summary: "wave a hand", words, flags }).split("\n");
  assert.equal(lines[0], "Usage: streamdir wave WHO [WHERE] [flags]");
  assert.ok(lines.includes(`  ${"-n, --times N".padEnd(24)}how often`));
});
