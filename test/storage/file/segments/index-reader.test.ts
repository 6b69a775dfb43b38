import assert from "node:assert/strict";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { INDEX_BLOCK_BYTES } from "../../../../src/storage/file/format/append-index.js";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { IndexReader } from "../../../../src/storage/file/segments/index-reader.js";
import { indexPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { decodeSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { StorageBusyError } from "../../../../src/storage/storage.js";
import { bytesOf, keptLog, rollAt, recordOf, type LogLine } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { Random } from "../../../helpers/random.js";
import { diskError } from "../../../helpers/watched-files.js";

interface Indexed {
  readonly rooms: FileRooms;
  readonly stream: FileStream;
  readonly ends: number[];
  readonly reader: IndexReader;
  readonly log: readonly LogLine[];
}

/** A stream of one segment with appends of these sizes, of which those of the first `written` are in files. */
async function indexed(sizes: readonly number[], written: number): Promise<Indexed> {
  const rooms = fileRooms();
  const stream = rooms.stream();
  const ends: number[] = [];
  for (const [index, size] of sizes.entries()) {
    if (index === written) await rooms.writer.persist(stream);
    const { position, segmentStart } = stream.reserve(size, index, rollAt(2 ** 32));
    const payload = bytesOf(size);
    stream.advance(recordOf(payload, { atMs: index * 10 }), size, segmentStart, index + 1);
    rooms.cache.append(stream, segmentStart, position, payload);
    ends.push(position + size);
  }
  if (written >= sizes.length) await rooms.writer.persist(stream);
  const { log, lines } = keptLog();
  return { rooms, stream, ends, reader: new IndexReader({ pool: rooms.pool, log }), log: lines };
}

/** The same stream as another process finds it. */
function reloaded({ stream }: Indexed): FileStream {
  const read = decodeSidecar(readFileSync(sidecarPath(stream.directory)));
  assert.ok(read.kind === "sound");
  return new FileStream(stream, stream.directory, read.sidecar);
}

async function around({ reader }: Indexed, stream: FileStream, byte: number): Promise<{ before: number; after: number } | null> {
  const segment = stream.segments[0];
  assert.ok(segment !== undefined);
  return reader.around(stream, segment, byte);
}

async function assertEnds(made: Indexed, stream: FileStream, byte: number): Promise<void> {
  const expected = { before: made.ends.findLast((end) => end <= byte) ?? 0, after: made.ends.find((end) => end > byte) };
  assert.deepEqual(await around(made, stream, byte), expected, `byte ${byte}`);
}

describe("the ends of appends around a byte", () => {
  test("are found in memory, in the sidecar, in a file, and on the border of both", async (t) => {
    const seed = Number(process.env["INDEX_SEED"] ?? Date.now() % 2 ** 32);
    t.diagnostic(`INDEX_SEED=${seed}`);
    const random = new Random(seed);
    for (const [appends, written] of [
      [1, 0],
      [1, 1],
      [2, 0],
      [50, 20],
      [50, 50],
      [5000, 0],
      [5000, 1],
      [5000, 2500],
      [5000, 4999],
      [5000, 5000],
    ] as const) {
      const sizes = Array.from({ length: appends }, () => random.integer(1, random.chance(0.02) ? 3000 : 60));
      const made = await indexed(sizes, written);
      const tail = made.stream.state.tail;
      const streams = written === appends ? [made.stream, reloaded(made)] : [made.stream];
      for (const stream of streams) {
        for (const byte of [0, tail - 1, ...Array.from({ length: 60 }, () => random.integer(0, tail - 1))])
          await assertEnds(made, stream, byte);
      }
      assert.deepEqual(made.log, []);
    }
  });

  test("take a few reads of a long index, and none for the same place again", async () => {
    const made = await indexed(
      Array.from({ length: 20_000 }, (_, index) => 1 + ((index * 37) % 90)),
      20_000,
    );
    const stream = reloaded(made);
    await assertEnds(made, stream, 1000);
    for (const byte of [77, 200_000, 450_000, 900_000]) {
      const before = made.rooms.files.operations.length;
      await assertEnds(made, stream, byte);
      const reads = made.rooms.files.operations.slice(before).filter(({ kind }) => kind === "read").length;
      assert.ok(reads >= 1 && reads <= 6, `${reads} reads for byte ${byte}`);
      const again = made.rooms.files.operations.length;
      await assertEnds(made, stream, byte);
      assert.equal(made.rooms.files.operations.length, again);
    }
  });
});

describe("an index that is not what was written", () => {
  const damages: Record<string, (path: string) => void> = {
    "with another bit": (path) => {
      const bytes = readFileSync(path);
      bytes[INDEX_BLOCK_BYTES + 30] = (bytes[INDEX_BLOCK_BYTES + 30] ?? 0) ^ 4;
      writeFileSync(path, bytes);
    },
    "that is too short": (path) => truncateSync(path, INDEX_BLOCK_BYTES),
    "that is missing": (path) => rmSync(path),
  };
  for (const [what, damage] of Object.entries(damages)) {
    test(`is logged once and given up: one ${what}`, async () => {
      const made = await indexed(
        Array.from({ length: 5000 }, () => 9),
        5000,
      );
      const stream = reloaded(made);
      await made.rooms.pool.closeAll();
      damage(indexPath(stream.directory, 0));
      for (const byte of [40_000, 5, 100]) assert.equal(await around(made, stream, byte), null);
      assert.deepEqual(
        made.log.map(({ level, fields }) => [level, fields["stream"]]),
        [["error", "s"]],
      );
    });
  }

  test("is not told from one that can't be opened now", async () => {
    const made = await indexed(
      Array.from({ length: 5000 }, () => 9),
      5000,
    );
    const stream = reloaded(made);
    await made.rooms.pool.closeAll();
    made.rooms.files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
    await assert.rejects(around(made, stream, 100), StorageBusyError);
    made.rooms.files.gate = null;
    await assertEnds(made, stream, 100);
  });
});
