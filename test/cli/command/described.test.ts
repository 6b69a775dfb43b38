import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describedVerb } from "../../../src/cli/command/described.js";
import { loneTaskHelp } from "../../../src/cli/command/task-help.js";
import { OPTIONS } from "../../../src/options.js";

describe("a verb on a directory", () => {
  const greet = { name: "greet", summary: "greet it", switches: [{ flag: "whom", value: "NAME", help: "who is greeted" }] };

  test("may name its directory, and has its switches as flags", () => {
    const lines = loneTaskHelp(describedVerb(greet)).split("\n");
    assert.equal(lines[0], "Usage: streamdir greet [DIR] [flags]");
    assert.ok(lines.includes(`  ${"--whom NAME".padEnd(24)}who is greeted`));
  });

  test("needs both directories where there is a second", () => {
    assert.match(loneTaskHelp(describedVerb({ ...greet, second: "DEST" })), /^Usage: streamdir greet DIR DEST \[flags\]\n/);
  });

  test("has every option of the server where it takes them, with its variable and its default", () => {
    const described = describedVerb({ ...greet, takesOptions: true });
    const flags = described.flags.map(({ flag }) => flag);
    for (const { flag, kind } of Object.values(OPTIONS)) {
      assert.ok(flags.includes(flag), flag);
      assert.equal(flags.includes(`no-${flag}`), kind === "flag");
    }
    const text = loneTaskHelp(described);
    assert.match(
      text,
      /--log-level debug\|info\|warn\|error\|silent\n {26}least severe.*\n {26}STREAMDIR_LOG_LEVEL also sets it; info by default\n/,
    );
    for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
  });
});
