import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { isJsonFramed } from "../../../../src/storage/file/offline/json-lines.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const MiB = 1024 * 1024;
const long = `"${"x".repeat(3 * MiB)}",\n`;

for (const [what, segments, expected] of [
  ["messages", ['{"a":1},\n2,\n', "null,\n"], true],
  ["messages longer than one step", [`1,\n${long}2,\n`], true],
  ["no segments", [], false],
  ["text", ["hello\n"], false],
  ["lines of JSON without commas", ["1\n2\n"], false],
  ["messages and then text", ["1,\nhello,\n"], false],
  ["a message that is cut", ["1,\n2"], false],
  ["an empty line", [",\n"], false],
] as const) {
  test(`${what} are ${expected ? "" : "not "}taken for a JSON stream`, async () => {
    const dir = tempDir();
    const paths = segments.map((text, index) => {
      writeFileSync(join(dir, String(index)), `${text}behind the stream`);
      return { path: join(dir, String(index)), length: text.length };
    });
    assert.equal(await isJsonFramed(systemFiles(false), paths), expected);
  });
}
