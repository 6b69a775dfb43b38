import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { loneTaskHelp, taskHelp } from "../../src/cli/command/task-help.js";
import { COMMANDS, TOOLS, VERBS } from "../../src/cli/commands.js";
import { helpText } from "../../src/cli/help.js";
import { CLIENT_VERBS } from "../../src/cli/client/client-verbs.js";

describe("the table of commands", () => {
  const names = COMMANDS.map(({ name }) => name);

  test("names each once", () => assert.equal(new Set(names).size, names.length));

  test("has all that the help names, and the help has all of it", () => {
    const text = helpText(VERBS, TOOLS, CLIENT_VERBS);
    for (const { name, summary } of COMMANDS) {
      assert.match(text, new RegExp(`^  ${name} `, "m"));
      assert.ok(text.includes(summary), name);
    }
    for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
  });

  for (const command of COMMANDS)
    test(`has a help for ${command.name}`, () => {
      const tool = TOOLS.find(({ name }) => name === command.name);
      const text = tool === undefined ? loneTaskHelp(command) : taskHelp(tool, null);
      assert.match(text, new RegExp(`^Usage: streamdir ${command.name} `));
    });
});
