import assert from "node:assert/strict";
import test from "node:test";
import { BLOCK_BYTES, parseTarHeader, tarHeader, tarPadding } from "../../../../src/cli/client/archive/tar.js";

for (const size of [0, 1, 511, 8 ** 11 - 1, 8 ** 11, 2 ** 45])
  test(`a header of ${size} bytes is read as it was written`, () => {
    const header = tarHeader({ name: "00000001.data", size }, 1_767_225_600_000);
    assert.equal(header.length, BLOCK_BYTES);
    assert.deepEqual(parseTarHeader(header), { name: "00000001.data", size });
  });

test("a file is filled up to whole blocks", () => {
  assert.deepEqual(
    [0, 1, 511, 512, 513].map((size) => tarPadding(size).length),
    [0, 511, 1, 0, 511],
  );
});

test("zeros are the end, and all else that is no header is none", () => {
  assert.equal(parseTarHeader(Buffer.alloc(BLOCK_BYTES)), "end");
  assert.equal(parseTarHeader(Buffer.alloc(BLOCK_BYTES, "a")), null);
  const header = tarHeader({ name: "a", size: 1 }, 0);
  for (let at = 0; at < BLOCK_BYTES; at += 7) {
    const damaged = Buffer.from(header);
    damaged[at] = (damaged[at] ?? 0) ^ 0x01;
    const parsed = parseTarHeader(damaged);
    // The last bytes of the checksum are not digits, and not looked at.
    if (at < 154 || at > 155) assert.equal(parsed, null, `byte ${at}`);
  }
});
