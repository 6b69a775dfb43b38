import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { readJournalFile } from "../../../../src/storage/file/journal/journal-reader.js";
import { KeptJournal, type DoneFile } from "../../../../src/storage/file/journal/kept-journal.js";
import { decodeRecords, RecordKind } from "../../../../src/storage/file/format/record.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { flipBit } from "../../../helpers/spoilt-files.js";
import { JOURNAL_DIRECTORY_ID, journalBytes, type MadeRecord } from "../../../helpers/journal-bytes.js";

interface Kept {
  readonly rooms: FileRooms;
  readonly kept: KeptJournal;
  /** A journal file with a frame for each of these lists of records, all of whose streams are as the test left them. */
  done(sequence: number, frames: readonly (readonly MadeRecord[])[]): DoneFile;
}

function setUp(): Kept {
  const rooms = fileRooms();
  return {
    rooms,
    kept: new KeptJournal(rooms),
    done(sequence, frames) {
      const path = rooms.layout.journalFile(sequence);
      writeFileSync(path, journalBytes(sequence, frames, sequence * 10));
      return { sequence, path, streams: new Set(frames.flat().map(({ stream }) => stream as FileStream)) };
    },
  };
}

/** What a kept file has: for each frame its batch, and whose records are in it. */
function contentOf({ layout }: FileRooms, sequence: number): string[] {
  const bytes = readFileSync(layout.keptJournalFile(sequence));
  const { frames, damages } = readJournalFile(bytes, { sequence, directoryId: JOURNAL_DIRECTORY_ID, lastBatch: null, isKept: true });
  assert.deepEqual(damages, []);
  return frames.map(
    (frame) =>
      `${frame.batch}: ${[...decodeRecords(frame)].map(({ identity, change, kind }) => (kind === RecordKind.delete ? "delete" : `${identity?.name ?? "…"} ${String(change.payload)}`)).join(", ")}`,
  );
}

describe("what streams' files can't take", () => {
  test("is kept alone, with the batches that it had, and an end", async () => {
    const { rooms, kept, done } = setUp();
    const [bad, good] = [rooms.stream("bad"), rooms.stream("good")];
    const file = done(3, [
      [{ stream: good, payload: "1" }],
      [
        { stream: bad, payload: "2" },
        { stream: good, payload: "3" },
      ],
      [{ stream: good }],
      [{ stream: bad, payload: "4" }],
    ]);
    await kept.keep(file, [bad]);
    assert.deepEqual(contentOf(rooms, 3), ["31: bad 2", "33: … 4", "33: "]);
    assert.equal(rooms.files.count("syncDirectory", /journal$/), 1);
    await kept.keep(file, [bad]);
    assert.deepEqual(contentOf(rooms, 3), ["31: bad 2", "33: … 4", "33: "], "doing it again changes nothing");
  });

  test("goes when the files have taken it, or all but what others still can't", async () => {
    const { rooms, kept, done } = setUp();
    const [one, other] = [rooms.stream("one"), rooms.stream("other")];
    await kept.keep(
      done(3, [
        [
          { stream: one, payload: "1" },
          { stream: other, payload: "2" },
        ],
      ]),
      [one, other],
    );
    const again = { sequence: 3, path: rooms.layout.keptJournalFile(3), isKept: true, streams: new Set([one, other]) };
    const next = new KeptJournal(rooms);
    await next.keep(again, [other]);
    assert.deepEqual(contentOf(rooms, 3), ["30: other 2", "30: "]);
    await next.keep(again, []);
    assert.ok(!existsSync(again.path));
  });

  test("goes with its stream, before the journal forgets the deletion", async () => {
    const { rooms, kept, done } = setUp();
    const [gone, other] = [rooms.stream("gone"), rooms.stream("other")];
    await kept.keep(
      done(3, [
        [
          { stream: gone, payload: "1" },
          { stream: other, payload: "2" },
        ],
      ]),
      [gone, other],
    );
    await kept.keep(done(4, [[{ stream: gone, payload: "3" }]]), [gone]);
    gone.deleted = true;
    await kept.keep(done(5, [[{ stream: gone, kind: RecordKind.delete }]]), []);
    assert.deepEqual(contentOf(rooms, 3), ["30: other 2", "30: "]);
    assert.ok(!existsSync(rooms.layout.keptJournalFile(4)));
    assert.ok(!existsSync(rooms.layout.keptJournalFile(5)));
  });

  test("of a later stream of the name stays when the earlier one goes", async () => {
    const { rooms, kept, done } = setUp();
    const [before, after] = [rooms.stream("s"), rooms.stream("s")];
    await kept.keep(done(3, [[{ stream: before, payload: "1" }]]), [before]);
    before.deleted = true;
    await kept.keep(
      done(4, [
        [
          { stream: before, payload: "x" },
          { stream: before, kind: RecordKind.delete },
          { stream: after, payload: "2" },
        ],
      ]),
      [after],
    );
    assert.deepEqual(
      readdirSync(rooms.layout.journal).filter((name) => name.endsWith(".kept")),
      ["0000000000000004.kept"],
    );
    assert.deepEqual(contentOf(rooms, 4), ["40: s 2", "40: "]);
  });

  test("is nothing where the file has nothing of the stream", async () => {
    const { rooms, kept, done } = setUp();
    await kept.keep(done(3, [[{ stream: rooms.stream("good"), payload: "1" }]]), [rooms.stream("bad")]);
    assert.ok(!existsSync(rooms.layout.keptJournalFile(3)));
  });

  test("is not taken from a file that was damaged meanwhile", async () => {
    const { rooms, kept, done } = setUp();
    const bad = rooms.stream("bad");
    const file = done(3, [[{ stream: bad, payload: "1" }], [{ stream: bad, payload: "2" }]]);
    flipBit(file.path, 60);
    await assert.rejects(kept.keep(file, [bad]), /was damaged since it was written, at byte 0/);
    assert.ok(!existsSync(rooms.layout.keptJournalFile(3)));
  });

  test("is known to be cut wherever it is", async () => {
    const { rooms, kept, done } = setUp();
    const bad = rooms.stream("bad");
    await kept.keep(done(3, [[{ stream: bad, payload: "1" }], [{ stream: bad, payload: "2" }]]), [bad]);
    const path = rooms.layout.keptJournalFile(3);
    for (const length of [1535, 1024, 512, 100, 0]) {
      truncateSync(path, length);
      const { damages } = readJournalFile(readFileSync(path), {
        sequence: 3,
        directoryId: JOURNAL_DIRECTORY_ID,
        lastBatch: null,
        isKept: true,
      });
      assert.deepEqual(
        damages.map(({ problem }) => problem),
        ["its end is missing"],
        `${length} bytes`,
      );
    }
  });
});
