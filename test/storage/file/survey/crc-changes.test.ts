import assert from "node:assert/strict";
import { test } from "node:test";
import { byteChanges, isOneBit } from "../../../../src/storage/file/survey/crc-changes.js";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { bytesOf } from "../../../helpers/engine.js";

test("the byte that was changed, and how, is among those that explain a checksum", () => {
  const sound = bytesOf(300);
  for (const [offset, change] of [
    [0, 1],
    [150, 0x80],
    [299, 0xff],
  ] as const) {
    const spoilt = Buffer.from(sound);
    spoilt.writeUInt8(spoilt.readUInt8(offset) ^ change, offset);
    const found = [...byteChanges((crc32(spoilt) ^ crc32(sound)) >>> 0, sound.length)];
    assert.deepEqual(found, [{ offset, change }]);
  }
});

test("one bit is one bit", () => {
  assert.deepEqual([0, 1, 2, 3, 0x80000000, 0x80000001].map(isOneBit), [false, true, true, false, true, false]);
});
