import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "../../../../src/storage/file/disk/error-reasons.js";
import { diskError } from "../../../helpers/watched-files.js";

test("what the system refuses has a reason in words, or else its code", () => {
  assert.equal(reasonOf(diskError("ENOSPC")), "the disk is full");
  assert.equal(reasonOf(diskError("EROFS")), "the file system is read-only");
  assert.equal(reasonOf(diskError("EIO")), "EIO");
  assert.match(reasonOf(diskError("ERR_ACCESS_DENIED")), /without --permission/);
});
