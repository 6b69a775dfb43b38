import assert from "node:assert/strict";
import { chownSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { createServer } from "../../../../src/server.js";
import { assertOwner, warnOfOtherOwner } from "../../../../src/storage/file/directory/owner.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { keptLog } from "../../../helpers/engine.js";
import { lacksUsers } from "../../../helpers/machine.js";
import { tempDir } from "../../../helpers/temp-dir.js";

test("a directory is its user's where the marker is", { skip: lacksUsers }, async () => {
  const layout = new Layout(tempDir());
  writeFileSync(layout.marker, "");
  await assertOwner(layout);
  chownSync(layout.marker, 65534, 65534);
  await assert.rejects(assertOwner(layout), DirectoryError);
});

test("root is warned of a directory that it serves and another user has", { skip: lacksUsers }, async () => {
  const { log, lines } = keptLog();
  const layout = new Layout(tempDir());
  await warnOfOtherOwner(layout, log);
  const serve = async () => (await createServer({ dir: layout.root, host: "127.0.0.1", port: 0, log })).close();
  await serve();
  const warnings = () => lines.filter(({ level }) => level === "warn");
  assert.deepEqual(warnings(), []);
  chownSync(layout.marker, 65534, 65534);
  await serve();
  const message = "the directory is another user's, whose own server can't open what this one makes in it";
  assert.deepEqual(warnings(), [{ level: "warn", message, fields: { dir: layout.root, owner: 65534 } }]);
});
