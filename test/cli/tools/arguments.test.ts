import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readToolCall } from "../../../src/cli/tools/arguments.js";
import type { Tool, ToolCommand } from "../../../src/cli/tools/tool.js";

const GREET: ToolCommand = {
  name: "talk greet",
  summary: "greet somebody",
  flags: [
    { flag: "whom", kind: "text", placeholder: "NAME", isRequired: true, env: "TALK_WHOM", help: "who is greeted" },
    { flag: "after", kind: "duration", placeholder: "TIME", help: "not at once" },
    { flag: "times", kind: "integer", placeholder: "N", help: "how often" },
    { flag: "loud", kind: "switch", help: "for all to hear" },
  ],
  run: () => Promise.resolve(0),
};
const PART: ToolCommand = { name: "talk part", summary: "say goodbye", flags: [], run: () => Promise.resolve(0) };
const TALK: Tool = { name: "talk", summary: "Talks.", commands: [GREET, PART] };

/** What a call was given, or what is wrong with it. */
function read(args: readonly string[], env: Record<string, string> = {}): unknown {
  const call = readToolCall(TALK, args, env);
  if (call.kind === "usage-error") return call.line;
  if (call.kind === "help") return { help: call.command?.name ?? null };
  const { given } = call;
  return [call.command.name, given.text("whom"), given.number("after"), given.number("times"), given.has("loud")];
}

describe("the arguments of a tool", () => {
  const rows: readonly [args: readonly string[], expected: unknown, env?: Record<string, string>][] = [
    [
      ["greet", "--whom", "you"],
      ["talk greet", "you", null, null, false],
    ],
    [
      ["greet", "--whom=a=b", "--loud", "--after", "1.5s", "--times", "3"],
      ["talk greet", "a=b", 1500, 3, true],
    ],
    [
      ["greet", "--whom", "first", "--whom", "last"],
      ["talk greet", "last", null, null, false],
    ],
    [["greet"], ["talk greet", "me", null, null, false], { TALK_WHOM: "me" }],
    [["greet", "--whom", "you"], ["talk greet", "you", null, null, false], { TALK_WHOM: "me" }],
    [["greet"], "streamdir talk greet needs --whom NAME"],
    [["greet"], "streamdir talk greet needs --whom NAME", { TALK_WHOM: "" }],
    [["greet", "--whom"], "--whom needs a value, like --whom=NAME"],
    [["greet", "--whom="], "--whom needs a value, like --whom=NAME"],
    [["greet", "--whom", "you", "--loud=yes"], "--loud takes no value"],
    [["greet", "--whom", "you", "--lou"], 'unknown flag "--lou"; did you mean --loud?'],
    [["greet", "--whom", "you", "-x"], 'unknown flag "-x"; streamdir talk greet --help lists them'],
    [["greet", "--whom", "you", "there"], 'streamdir talk greet takes no "there"'],
    [["greet", "--whom", "you", "--", "--loud"], 'streamdir talk greet takes no "--loud"'],
    [["greet", "--whom", "you", "--after", "5"], '--after must be from 1ms to 36500d, with its unit like 1h or 500ms, not "5"'],
    [["greet", "--whom", "you", "--after", "0s"], '--after must be from 1ms to 36500d, not "0s"'],
    [["greet", "--whom", "you", "--times", "-1"], '--times must be from 0 to 9007199254740991, not "-1"'],
    [["greet", "--whom", "you", "--times", "many"], '--times must be from 0 to 9007199254740991, not "many"'],
    [["gret"], 'unknown command "gret"; did you mean streamdir talk greet?'],
    [["shout"], "streamdir talk is followed by greet or part"],
    [[], "streamdir talk is followed by greet or part"],
    [["--help"], { help: null }],
    [["shout", "-h"], { help: null }],
    [["greet", "--help"], { help: "talk greet" }],
    [["part", "--whom", "-h"], { help: "talk part" }],
  ];
  for (const [args, expected, env] of rows)
    test(`"${args.join(" ")}"${env === undefined ? "" : ` with ${JSON.stringify(env)}`}`, () =>
      assert.deepEqual(read(args, env), expected));
});

test("what a command needs and did not mark as required is a fault of the program", () => {
  const call = readToolCall(TALK, ["part"], {});
  assert.ok(call.kind === "run");
  assert.throws(() => call.given.needed("whom"), /--whom is not marked as required/);
});
