import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { commandHelp, toolHelp } from "../../../src/cli/tools/tool-help.js";
import { TOKEN_TOOL } from "../../../src/cli/tools/token.js";
import type { ToolCommand } from "../../../src/cli/tools/tool.js";

const GREET: ToolCommand = {
  name: "talk greet",
  summary: "greet somebody",
  details: ["", "Politely."],
  flags: [
    { flag: "whom", kind: "text", placeholder: "NAME", isRequired: true, env: "TALK_WHOM", help: "who is greeted" },
    { flag: "loud", kind: "switch", help: "for all to hear" },
  ],
  run: () => Promise.resolve(0),
};

test("the help of a tool lists its commands", () => {
  assert.equal(
    toolHelp({ name: "talk", summary: "Talks.", commands: [GREET] }),
    `Usage: streamdir talk greet [flags]

Talks.

  talk greet              greet somebody

streamdir talk COMMAND --help prints the flags of a command.
`,
  );
});

test("the help of a command lists its flags, and what it needs in the usage", () => {
  assert.equal(
    commandHelp(GREET),
    `Usage: streamdir talk greet --whom NAME [flags]

Greet somebody.

Politely.

  --whom NAME             who is greeted (TALK_WHOM)
  --loud                  for all to hear
`,
  );
});

describe("the help of streamdir token", () => {
  for (const text of [toolHelp(TOKEN_TOOL), ...TOKEN_TOOL.commands.map(commandHelp)])
    test(`fits 120 columns: ${text.split("\n")[0] ?? ""}`, () => {
      assert.deepEqual(
        text.split("\n").filter((line) => line.length > 120),
        [],
      );
    });
});
