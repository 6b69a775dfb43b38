import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { COMMANDS } from "../../src/cli/commands.js";
import { manPage } from "./man-page.js";

const PATH = new URL("../../docs/streamdir.1", import.meta.url);

test("docs/streamdir.1 is made from the table of commands", () => {
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(PATH, manPage());
  assert.equal(readFileSync(PATH, "utf8"), manPage(), "UPDATE_DOCS=1 writes it anew");
});

test("the manual page has every command and every flag", () => {
  const text = manPage().replaceAll("\\-", "-");
  for (const { name, tasks, flags } of COMMANDS) {
    assert.match(text, new RegExp(`^\\.SS streamdir ${name}`, "m"));
    for (const { flag } of [...flags, ...tasks.flatMap((task) => task.flags)])
      if (!flag.startsWith("no-")) assert.match(text, new RegExp(`^\\.B (-\\w, )?--${flag}( |$)`, "m"), flag);
  }
});

test("groff has nothing to say against it", { skip: spawnSync("groff", ["--version"]).status !== 0 && "groff is missing" }, () => {
  const { status, stderr, stdout } = spawnSync("groff", ["-man", "-Tutf8", "-ww"], { input: manPage(), encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  // Bold letters are between escape sequences, or printed twice.
  assert.match(stdout.replaceAll(/\u001b\[[\d;]*m|.\u0008/g, ""), /EXIT STATUS/);
});
