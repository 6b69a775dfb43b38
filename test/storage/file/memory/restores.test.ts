import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lastRestoreMs, NEVER_RESTORED, restoredAgain, writerOf } from "../../../../src/storage/file/memory/restores.js";

describe("the restores of a directory", () => {
  test("are in order, also where the clock was put back", () => {
    assert.equal(lastRestoreMs(NEVER_RESTORED), -Infinity);
    const restores = restoredAgain(restoredAgain(restoredAgain(NEVER_RESTORED, 100), 100), 50);
    assert.deepEqual(restores, [100, 101, 102]);
    assert.equal(lastRestoreMs(restores), 102);
  });

  test("are a thousand at most, the newest", () => {
    let restores = NEVER_RESTORED;
    for (let atMs = 1; atMs <= 1001; atMs += 1) restores = restoredAgain(restores, atMs);
    assert.deepEqual([restores.length, restores[0], lastRestoreMs(restores)], [1000, 2, 1001]);
  });

  for (const [firstAtMs, restores, writer] of [
    [99, [], "id"],
    [Infinity, [], "id"],
    [99, [100, 200], "id"],
    [100, [100, 200], "id.100"],
    [199, [100, 200], "id.100"],
    [200, [100, 200], "id.200"],
    [Infinity, [100, 200], "id.200"],
  ] as const)
    test(`make ${writer} the writer of a segment begun at ${firstAtMs} after ${JSON.stringify(restores)}`, () =>
      assert.equal(writerOf("id", firstAtMs, restores), writer));
});
