import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseLoneTask, parseTask, type Given, type TaskFlag, type Tool } from "../../../src/cli/command/task.js";

const flag = (name: string, kind: TaskFlag["kind"], more: Partial<TaskFlag> = {}): TaskFlag => ({
  flag: name,
  kind,
  placeholder: kind === "flag" ? "" : name.toUpperCase(),
  isRequired: false,
  env: null,
  help: "",
  ...more,
});
const WAVE = {
  name: "wave",
  summary: "wave a hand",
  flags: [
    flag("to", "text", { isRequired: true, env: "STREAMDIR_TO" }),
    flag("for", "duration"),
    flag("hands", "list"),
    flag("loudly", "flag"),
  ],
  run: () => Promise.resolve(0),
};
const TOOL: Tool = { name: "greet", summary: "greet people", tasks: [WAVE, { ...WAVE, name: "bow", flags: [] }] };

function given(line: string, env: Record<string, string> = {}): Given {
  const command = parseTask(TOOL, line.split(" "), env);
  assert.ok(command.kind === "run", JSON.stringify(command));
  return command.given;
}

describe("the flags of a task", () => {
  test("are read as their kinds say", () => {
    const values = given("wave --to a --to=b --for 1.5h --hands left,right --hands=third --loudly");
    assert.equal(values.required("to"), "b");
    assert.equal(values.durationMs("for"), 5_400_000);
    assert.deepEqual(values.list("hands"), ["left", "right", "third"]);
    assert.equal(values.has("loudly"), true);
  });

  test("are absent when nobody gave them", () => {
    const values = given("wave --to a");
    assert.deepEqual([values.text("hands"), values.durationMs("for"), values.list("hands"), values.has("loudly")], [null, null, [], false]);
    assert.equal(values.required("none"), "");
  });

  test("come from their variables too, and win over them", () => {
    assert.equal(given("wave", { STREAMDIR_TO: "env" }).text("to"), "env");
    assert.equal(given("wave --to a", { STREAMDIR_TO: "env" }).text("to"), "a");
    assert.equal(parseTask(TOOL, ["wave"], { STREAMDIR_TO: "" }).kind, "usage-error");
  });

  test("take a value with a dash after an equals sign", () => assert.equal(given("wave --to=-a").text("to"), "-a"));

  for (const [line, words] of [
    ["wave", "streamdir greet wave needs --to TO"],
    ["wave --to", "--to needs a value: TO"],
    ["wave --to=", "--to needs a value: TO"],
    ["wave --to --loudly", "--to needs a value: TO"],
    ["wave --to a --loudly=yes", "--loudly takes no value"],
    ["wave --to a --for 5", '--for must be a time like 30d or 1h, not "5"'],
    ["wave --to a --hands left,,right", "--hands has an empty word between commas"],
    ["wave --to a --hands m\ufffd", '--hands "m\ufffd" is not valid UTF-8, or has U+FFFD'],
    ["wave --to a --loudl", 'unknown flag "--loudl"; did you mean --loudly?'],
    ["wave --to a --zzzzzz", 'unknown flag "--zzzzzz"; streamdir greet wave --help lists them'],
    ["wave --to a -t", 'unknown flag "-t"; did you mean --to?'],
    ["wave --to a more", 'streamdir greet wave takes no "more"; it has flags only'],
    ["wave --to a -- more", 'streamdir greet wave takes no "more"; it has flags only'],
    ["wafe", 'streamdir greet has no command "wafe"; did you mean wave?'],
    ["--to", 'streamdir greet has no command "--to"; it has wave, bow'],
  ] as const)
    test(`are refused in ${line}`, () => assert.deepEqual(parseTask(TOOL, line.split(" "), {}), { kind: "usage-error", line: words }));

  test("are asked for when there is no task at all", () =>
    assert.deepEqual(parseTask(TOOL, [], {}), { kind: "usage-error", line: "streamdir greet needs a command: wave, bow" }));

  test("are told by --help, wherever it stands", () => {
    assert.deepEqual(parseTask(TOOL, ["--help"], {}), { kind: "help", task: null });
    assert.deepEqual(parseTask(TOOL, ["wave", "--to", "-h"], {}), { kind: "help", task: WAVE });
  });
});

describe("a task without a tool", () => {
  const TASK = {
    ...WAVE,
    words: [
      { placeholder: "WHO", isRequired: true },
      { placeholder: "WHERE", isRequired: false },
    ],
    flags: [flag("times", "integer", { short: "n" }), flag("force", "bytes", { env: "FORCE" }), flag("hard", "flag", { short: "f" })],
  };
  const read = (line: string, env: Record<string, string> = {}) => parseLoneTask(TASK, line === "" ? [] : line.split(" "), env);

  test("has words, short flags, whole numbers and sizes", () => {
    const command = read("me -fn 3 --force=2KiB here");
    assert.ok(command.kind === "run");
    assert.deepEqual([command.given.word(0), command.given.word(1), command.given.word(2)], ["me", "here", ""]);
    assert.deepEqual([command.given.number("times"), command.given.number("force"), command.given.has("hard")], [3, 2048, true]);
    assert.deepEqual(read("-- --help").kind, "run");
    assert.deepEqual(read("me --help"), { kind: "help" });
  });

  for (const [line, env, words] of [
    ["", {}, "streamdir wave needs WHO"],
    ["a b c", {}, 'streamdir wave takes no "c"; it has only WHO WHERE'],
    ["a ", {}, "WHERE must not be empty"],
    ["m\ufffd", {}, 'WHO "m\ufffd" is not valid UTF-8, or has U+FFFD'],
    ["a b ", {}, 'streamdir wave takes no ""; it has only WHO WHERE'],
    ["a -n -5", {}, "-n needs a value: TIMES"],
    ["a -n 1.5", {}, '-n must be a whole number, not "1.5"'],
    ["a --force much", {}, '--force must be a size like 64KiB, not "much"'],
    ["a", { FORCE: "much" }, 'FORCE must be a size like 64KiB, not "much"'],
    ["a -15", {}, 'unknown flag "-1"; write -n and a number'],
    ["a -x", {}, 'unknown flag "-x"; streamdir wave --help lists them; a WHO that begins with a dash stands behind --'],
    ["-- a b --loudly", {}, 'streamdir wave takes no "--loudly"; its flags stand before --'],
    ["-- a b c", {}, 'streamdir wave takes no "c"; it has only WHO WHERE'],
  ] as const)
    test(`is refused: ${line} ${JSON.stringify(env)}`, () => assert.deepEqual(read(line, env), { kind: "usage-error", line: words }));

  test("that reads standard input says so to who names a file", () => {
    const line = 'streamdir wave takes no "file"; it reads standard input: streamdir wave WHO < FILE';
    const reading = { ...TASK, words: TASK.words.slice(0, 1), readsInput: true } as const;
    assert.deepEqual(parseLoneTask(reading, ["me", "file"], {}), { kind: "usage-error", line });
  });
});
