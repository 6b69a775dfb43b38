import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { crc32 } from "node:zlib";
import {
  AppendIndex,
  baseOf,
  INDEX_BLOCK_BYTES,
  indexOfOne,
  scanBlock,
  type IndexBase,
} from "../../../../src/storage/file/format/append-index.js";
import { Random } from "../../../helpers/random.js";

/** What was added to an index. */
interface Added {
  readonly bytes: number;
  readonly messages: number;
  readonly atMs: number;
}

function indexOf(firstAtMs: number, appends: readonly Added[]): AppendIndex {
  const index = new AppendIndex(firstAtMs);
  for (const { bytes, messages, atMs } of appends) index.add(bytes, messages, atMs);
  return index;
}

/** Everything that the blocks of an index say. */
function entriesOf(bytes: Uint8Array, firstAtMs: number): IndexBase[] {
  const entries: IndexBase[] = [];
  let last: IndexBase = { end: 0, atMs: firstAtMs, messages: 0 };
  for (let start = 0; start < bytes.length; start += INDEX_BLOCK_BYTES) {
    const block = bytes.subarray(start, start + INDEX_BLOCK_BYTES);
    if (start > 0) assert.deepEqual(baseOf(block), last, `the block at ${start} begins where the one before it ended`);
    const end = scanBlock(block, start === 0 ? last : null, (at, atMs, messages) => entries.push({ end: at, atMs, messages }) > 0);
    assert.ok(end !== null);
    last = end;
  }
  return entries;
}

describe("an index of appends", () => {
  const table: [what: string, appends: Added[], expected: IndexBase[]][] = [
    ["of one", [{ bytes: 5, messages: 1, atMs: 1000 }], [{ end: 5, messages: 1, atMs: 1000 }]],
    [
      "of many messages",
      [
        { bytes: 9, messages: 3, atMs: 1000 },
        { bytes: 200, messages: 70_000, atMs: 1300 },
      ],
      [
        { end: 9, messages: 3, atMs: 1000 },
        { end: 209, messages: 70_003, atMs: 1300 },
      ],
    ],
    [
      "of large ones, years apart",
      [
        { bytes: 2 ** 32, messages: 1, atMs: 1000 },
        { bytes: 1, messages: 2 ** 32, atMs: 1e12 },
      ],
      [
        { end: 2 ** 32, messages: 1, atMs: 1000 },
        { end: 2 ** 32 + 1, messages: 2 ** 32 + 1, atMs: 1e12 },
      ],
    ],
    [
      "whose clock was put back",
      [
        { bytes: 1, messages: 1, atMs: 5000 },
        { bytes: 1, messages: 1, atMs: 2000 },
        { bytes: 1, messages: 1, atMs: 6000 },
      ],
      [
        { end: 1, messages: 1, atMs: 5000 },
        { end: 2, messages: 2, atMs: 5000 },
        { end: 3, messages: 3, atMs: 6000 },
      ],
    ],
  ];
  for (const [what, appends, expected] of table) {
    test(`tells where each ended: ${what}`, () => {
      const index = indexOf(1000, appends);
      assert.deepEqual(entriesOf(index.bytes(0, index.length), 1000), expected);
      assert.equal(index.end, expected.at(-1)?.end);
    });
  }

  test("takes three bytes for a small append", () => {
    const index = indexOf(
      0,
      Array.from({ length: 1000 }, (_, at) => ({ bytes: 100, messages: 1, atMs: at * 20 })),
    );
    assert.ok(index.length <= 3 * 1000, `${index.length} bytes`);
    assert.equal(indexOfOne(63, 7).length, 2);
  });

  test("goes on where a sidecar or its file left it, and the bytes are those of one that was never interrupted", (t) => {
    const seed = Number(process.env["INDEX_SEED"] ?? Date.now() % 2 ** 32);
    t.diagnostic(`INDEX_SEED=${seed}`);
    const random = new Random(seed);
    for (let round = 0; round < 20; round += 1) {
      const appends: Added[] = [];
      for (let at = 0, nowMs = 1000; at < 3000; at += 1)
        appends.push({
          bytes: random.integer(1, random.pick([50, 5000, 1e6])),
          messages: random.chance(0.9) ? 1 : random.integer(1, 500),
          atMs: (nowMs += random.integer(0, random.pick([3, 100_000]))),
        });
      const whole = indexOf(1000, appends);
      const bytes = whole.bytes(0, whole.length);
      let index = new AppendIndex(1000);
      let file = Buffer.alloc(0);
      for (const { bytes: length, messages, atMs } of appends) {
        index.add(length, messages, atMs);
        if (random.chance(0.01)) {
          const limit = random.integer(index.written, index.length);
          file = Buffer.concat([file, index.bytes(index.written, limit)]);
          index.noteWritten(limit, crc32(file));
        }
        if (random.chance(0.005)) {
          file = Buffer.concat([file, index.bytes(index.written, index.length)]);
          index.noteWritten(index.length, crc32(file));
          const { messages: all, atMs: lastAtMs, length: indexLength, end } = index.mark;
          const entry = { messages: all, atMs: lastAtMs, length: indexLength, crc: index.crc };
          index = AppendIndex.of(random.chance(0.5) ? { ...entry, inline: null } : { ...entry, inline: Uint8Array.from(file) }, end);
          if (index.written === 0) file = Buffer.alloc(0);
        }
      }
      file = Buffer.concat([file, index.bytes(index.written, index.length)]);
      assert.deepEqual(index.mark, whole.mark);
      assert.ok(file.equals(bytes), `round ${round}`);
      assert.equal(entriesOf(bytes, 1000).length, appends.length);
    }
  });
});

test("a block that is none is found out", () => {
  assert.equal(
    scanBlock(Buffer.alloc(10), null, () => true),
    null,
  );
  assert.equal(
    scanBlock(Uint8Array.of(200, 200), { end: 0, atMs: 0, messages: 0 }, () => true),
    null,
  );
});
