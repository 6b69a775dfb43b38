import assert from "node:assert/strict";
import { chownSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { assertOwner } from "../../../../src/storage/file/directory/owner.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { lacksUsers } from "../../../helpers/machine.js";
import { tempDir } from "../../../helpers/temp-dir.js";

test("a directory is its user's where the marker is", { skip: lacksUsers }, async () => {
  const layout = new Layout(tempDir());
  writeFileSync(layout.marker, "");
  await assertOwner(layout);
  chownSync(layout.marker, 65534, 65534);
  await assert.rejects(assertOwner(layout), DirectoryError);
});
