import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { cutIntoPieces, PIECE_BYTES } from "../../../../src/cli/client/archive/piece-cuts.js";

function lengths(bytes: Buffer, isJson = false): number[] {
  const pieces = [...cutIntoPieces(bytes, isJson)];
  assert.ok(Buffer.concat(pieces).equals(bytes), "the pieces are the bytes");
  return pieces.map((piece) => piece.length);
}

describe("an answer is cut", () => {
  for (const [title, bytes, isJson, expected] of [
    ["nowhere, where it is empty", Buffer.alloc(0), false, []],
    ["nowhere, where it is as long as a piece", Buffer.alloc(PIECE_BYTES), false, [PIECE_BYTES]],
    ["at the byte, where it has no lines", Buffer.alloc(2 * PIECE_BYTES + 1), false, [PIECE_BYTES, PIECE_BYTES, 1]],
    ["at the end of a line", Buffer.from(`a\n${"b".repeat(PIECE_BYTES)}`), false, [2, PIECE_BYTES]],
    ["between two characters", Buffer.from(`abc${"€".repeat(PIECE_BYTES / 2)}`), false, [PIECE_BYTES - 2, PIECE_BYTES / 2 + 5]],
    ["at the byte, where it is no text", Buffer.alloc(PIECE_BYTES + 1, 0x80), false, [PIECE_BYTES, 1]],
    ["between messages of JSON", Buffer.from("123456\n".repeat(PIECE_BYTES / 4)), true, [524286, 393218]],
    ["behind a long message of JSON", Buffer.from(`"${"x".repeat(PIECE_BYTES)}"\n1\n`), true, [PIECE_BYTES + 3, 2]],
    ["nowhere, where it is one long message", Buffer.from(`"${"x".repeat(PIECE_BYTES)}"\n`), true, [PIECE_BYTES + 3]],
  ] as const)
    test(title, () => assert.deepEqual(lengths(bytes, isJson), expected));
});
