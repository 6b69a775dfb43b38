import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseTask } from "../../../src/cli/command/task.js";
import { COMMANDS, TOOLS } from "../../../src/cli/commands.js";

describe("streamdir completions", () => {
  const tool = TOOLS.find(({ name }) => name === "completions") ?? assert.fail("it is in the table");

  for (const shell of ["bash", "zsh", "fish"])
    test(`${shell} names every command and every flag`, async () => {
      const command = parseTask(tool, [shell], {});
      assert.ok(command.kind === "run");
      let text = "";
      const ignored = { env: {}, stderr: { write: () => assert.fail("it says nothing") }, on: () => {}, off: () => {}, exit: () => {} };
      const stdout = { write: (part: string | Buffer) => (text += part.toString()) };
      assert.equal(await command.task.run(command.given, { ...ignored, stdout }), 0);
      for (const { name, flags, tasks } of [
        ...COMMANDS,
        ...COMMANDS.flatMap((each) => each.tasks.map((task) => ({ ...task, tasks: [] }))),
      ]) {
        assert.ok(text.includes(name), name);
        for (const { flag } of flags) assert.ok(text.includes(flag), `${name} --${flag}`);
        assert.ok(tasks.every((task) => text.includes(task.name)));
      }
    });
});
