import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startStreamdir } from "../../helpers/process.js";

describe("streamdir token", () => {
  test("--help prints its commands and ends with 0", async (context) => {
    const { status, stdout, stderr } = await startStreamdir(context, ["token", "--help"]).ended;
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^Usage: streamdir token add\|list\|revoke\|sign\|add-key \[flags\]\n/);
  });

  test("add --help prints its flags", async (context) => {
    const { status, stdout } = await startStreamdir(context, ["token", "add", "--help"]).ended;
    assert.equal(status, 0);
    assert.match(stdout, /^ {2}--streams PATTERNS /m);
  });

  test("with a wrong word ends with 64 and one line", async (context) => {
    const { status, stdout, stderr } = await startStreamdir(context, ["token", "ad"]).ended;
    assert.deepEqual([status, stdout, stderr], [64, "", 'streamdir: unknown command "ad"; did you mean streamdir token add?\n']);
  });
});
