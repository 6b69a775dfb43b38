import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { replaceFile } from "../../../../src/storage/file/disk/replacement.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

describe("replacing a file", () => {
  test("puts the new one in place of the old, also when an earlier attempt was cut short", async () => {
    const path = join(tempDir(), "meta");
    writeFileSync(path, "old");
    writeFileSync(`${path}.new`, "a longer leftover of a crash");
    await replaceFile(systemFiles(true), path, Buffer.from("new"));
    assert.equal(readFileSync(path, "utf8"), "new");
    assert.ok(!existsSync(`${path}.new`));
  });

  test("has the bytes synced as they are written, before the rename", async () => {
    const files = new WatchedFiles();
    await replaceFile(files, join(tempDir(), "meta"), Buffer.from("new"));
    assert.deepEqual(
      files.operations.map(({ kind }) => kind),
      ["open", "write", "close", "rename"],
    );
  });

  test("leaves the old one when it fails", async () => {
    for (const kind of ["write", "rename"]) {
      const path = join(tempDir(), "meta");
      writeFileSync(path, "old");
      const files = new WatchedFiles();
      files.gate = (operation) => (operation.kind === kind ? diskError("ENOSPC") : undefined);
      await assert.rejects(replaceFile(files, path, Buffer.from("new")), { code: "ENOSPC" });
      assert.equal(readFileSync(path, "utf8"), "old");
      assert.equal(files.count("close", /meta/), 1);
    }
  });
});
