import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import type { FileStream } from "../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../src/storage/file/journal/journal.js";
import { readJournalFile } from "../../src/storage/file/journal/journal-reader.js";
import { decodeRecords, RecordKind } from "../../src/storage/file/format/record.js";
import { bytesOf, recordOf } from "./engine.js";
import type { FileRooms } from "./file-rooms.js";
import { JOURNAL_DIRECTORY_ID } from "./journal-bytes.js";

/** A journal that is closed when the test is over. */
export async function openJournal(t: TestContext, rooms: FileRooms, more?: Parameters<FileRooms["journal"]>[0]): Promise<Journal> {
  const journal = rooms.journal(more);
  await journal.open();
  t.after(() => journal.close());
  return journal;
}

/** A journal with three sealed files, and none that it could go on in after the next. */
export async function journalWithoutFreeFiles(
  t: TestContext,
  rooms: FileRooms,
): Promise<{ journal: Journal; stream: FileStream; sealed: readonly string[] }> {
  const sealed: string[] = [];
  const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
  const stream = rooms.stream();
  for (let index = 0; sealed.length < 3; index += 1) {
    journal.enqueue(rooms.entry(stream, `${index}`, { change: recordOf(bytesOf(3000, index)) }));
    await rooms.files.idle();
  }
  return { journal, stream, sealed };
}

/** The payloads and batches of the records in a journal file, in order. */
export function journalContent(rooms: FileRooms, sequence: number): { batches: number[]; payloads: string[] } {
  const { frames, damages } = readJournalFile(readFileSync(rooms.layout.journalFile(sequence)), {
    sequence,
    directoryId: JOURNAL_DIRECTORY_ID,
    lastBatch: null,
  });
  assert.deepEqual(damages, []);
  const appends = frames.flatMap((frame) => [...decodeRecords(frame)]).filter(({ kind }) => kind === RecordKind.append);
  return { batches: frames.map(({ batch }) => batch), payloads: appends.map(({ change }) => String(change.payload)) };
}

/** Enqueues batches of one record until `until` holds; returns how many were durable. */
export async function fill(rooms: FileRooms, journal: Journal, stream: FileStream, until: () => boolean): Promise<number> {
  let durable = 0;
  for (let index = 0; !until() && index < 500; index += 1) {
    await new Promise<void>((resolve) =>
      journal.enqueue(
        rooms.entry(stream, "", {
          change: recordOf(bytesOf(3000, index)),
          settle: (how) => (how === "durable" && (durable += 1), resolve()),
        }),
      ),
    );
  }
  return durable;
}

/** Enqueues entries one after the other until one waits for the next file. */
export async function fillUntilOneWaits(rooms: FileRooms, journal: Journal, stream: FileStream): Promise<void> {
  for (let index = 0; index < 80 && stream.pending === 0; index += 1) {
    journal.enqueue(rooms.entry(stream, "", { change: recordOf(bytesOf(3000)) }));
    await rooms.files.idle();
  }
  assert.ok(stream.pending > 0, "the last waits for a file");
}

/** Enqueues batches of one record without waiting for their end; `settled` counts. */
export async function pour(rooms: FileRooms, journal: Journal, stream: FileStream, count: number): Promise<{ settled: number }> {
  const ends = { settled: 0 };
  for (let index = 0; index < count; index += 1) {
    journal.enqueue(rooms.entry(stream, "", { change: recordOf(bytesOf(3000, index)), settle: () => (ends.settled += 1) }));
    await rooms.files.idle();
  }
  return ends;
}
