import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MutableState } from "../../../../src/storage/state.js";
import { encodeSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { mendSidecar } from "../../../../src/storage/file/offline/sidecar-mending.js";
import { configOf } from "../../../helpers/engine.js";

const state = new MutableState();
state.tail = 5;
state.producers = new Map([["p", { epoch: 1, seq: 2, atMs: 3 }]]);
const SOUND = encodeSidecar({
  id: "a".repeat(24),
  name: "ä/b",
  config: configOf(),
  state,
  earliest: { position: 0, segmentStart: 0 },
  forks: null,
  softDeleted: false,
  segments: [{ start: 0, length: 5, crc: 7, firstAtMs: 0, newestAtMs: 0, index: "one" }],
  batch: 9,
  claimed: false,
});

function changed(...changes: [offset: number, bits: number][]): Buffer {
  const bytes = Buffer.from(SOUND);
  for (const [offset, bits] of changes) bytes.writeUInt8(bytes.readUInt8(offset) ^ bits, offset);
  return bytes;
}

describe("mending a sidecar", () => {
  test("puts any one byte right, whatever it was changed to", () => {
    for (let offset = 0; offset < SOUND.length; offset += 1) {
      const mended = mendSidecar(changed([offset, 1 + ((offset * 37) % 255)]));
      assert.deepEqual([mended?.bytes.equals(SOUND), mended?.offset], [true, offset]);
      assert.equal(mended?.sidecar.name, "ä/b");
    }
  });

  test("leaves two wrong bytes, wherever they are", () => {
    for (let offset = 0; offset + 17 < SOUND.length; offset += 5) assert.equal(mendSidecar(changed([offset, 1], [offset + 17, 128])), null);
  });

  for (const [what, bytes] of [
    ["nothing", Buffer.alloc(0)],
    ["a file that was cut", SOUND.subarray(0, -1)],
    ["zeros", Buffer.alloc(300)],
    ["what is sound", SOUND],
  ] as const) {
    test(`leaves ${what}`, () => assert.equal(mendSidecar(bytes), null));
  }
});
