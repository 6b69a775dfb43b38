import assert from "node:assert/strict";
import { test } from "node:test";
import { allEnded } from "../../../../src/storage/file/disk/all-ended.js";
import { Barrier } from "../../../helpers/watched-files.js";

test("all work is waited for, also where some fails, and the first failure is told", async () => {
  const disk = new Barrier();
  let isOver = false;
  const slow = disk.opened.then(() => void (isOver = true));
  const failed = [Promise.reject(new Error("one")), Promise.reject(new Error("two"))];
  const ended = allEnded([undefined, ...failed, slow]);
  disk.open();
  await assert.rejects(ended, { message: "one" });
  assert.ok(isOver);
});

test("work that succeeds is waited for", async () => {
  await allEnded([Promise.resolve(), undefined]);
});
