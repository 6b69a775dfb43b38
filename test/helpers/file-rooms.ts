import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { FileStream } from "../../src/storage/file/memory/file-stream.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { Journal, type JournalOptions } from "../../src/storage/file/journal/journal.js";
import type { JournalEntry } from "../../src/storage/file/journal/journal-entry.js";
import { Room } from "../../src/storage/file/disk/disk-space.js";
import { RecordKind } from "../../src/storage/file/format/record.js";
import { SegmentPool } from "../../src/storage/file/segments/segment-pool.js";
import { SegmentWriter } from "../../src/storage/file/segments/segment-writer.js";
import { TailCache } from "../../src/storage/file/memory/tail-cache.js";
import { Trash } from "../../src/storage/file/segments/trash.js";
import type { AppendRecord, Settlement } from "../../src/storage/storage.js";
import { configOf, keptLog, recordOf, rollAt, SMALL, type LogLine } from "./engine.js";
import { ManualClock } from "./manual-clock.js";
import { tempDir } from "./temp-dir.js";
import { WatchedFiles } from "./watched-files.js";

/** The rooms of the engine below the engine itself, in a directory of their own. */
export interface FileRooms {
  readonly layout: Layout;
  readonly files: WatchedFiles;
  readonly pool: SegmentPool;
  readonly cache: TailCache;
  readonly writer: SegmentWriter;
  readonly trash: Trash;
  readonly room: Room;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly faults: readonly Error[];
  readonly told: string[];
  /** A stream that is durable and empty. */
  stream(name?: string): FileStream;
  /** Makes `payload` durable in the stream, as the journal would. */
  advance(stream: FileStream, payload: Buffer, more?: Partial<AppendRecord>): void;
  /** A journal that tells in `told` what it does. */
  journal(more?: Partial<JournalOptions>): Journal;
  /** An entry that tells in `told` how it settles. */
  entry(stream: FileStream, label: string, more?: Partial<JournalEntry>): JournalEntry;
}

/** Makes the rooms, with a clock that keeps time unless it is another. */
export function fileRooms(clock = new ManualClock()): FileRooms {
  const layout = new Layout(join(tempDir(), "data"));
  for (const directory of [layout.journal, layout.streams, layout.trash]) mkdirSync(directory, { recursive: true });
  const files = new WatchedFiles();
  const { log, lines } = keptLog();
  const pool = new SegmentPool(files);
  const cache = new TailCache(SMALL.tailCacheBytes);
  const writer = new SegmentWriter({ files, layout, pool, cache, threads: 8, damaged: (stream, damage) => void (stream.damage = damage) });
  const faults: Error[] = [];
  const told: string[] = [];
  const trash = new Trash({ files, layout, pool, clock, log, failed: ({ message }) => told.push(`can't move: ${message}`), fault: (error) => faults.push(error), noteShard: (directory) => writer.noteShard(directory) });
  const journals: Journal[] = [];
  const found = (): void => journals.forEach((journal) => journal.roomFound());
  const room = new Room({ files, probePath: join(layout.trash, "probe"), clock, log, found, fault: (error) => faults.push(error) });
  let made = 0;
  let batch = 0;
  return {
    layout, files, pool, cache, writer, trash, room, clock, log: lines, faults, told,
    stream(name = "s") {
      const stream = new FileStream({ id: `id${(made += 1)}`, name, config: configOf() }, layout.streamDirectory(name), null);
      stream.created = true;
      return stream;
    },
    advance(stream, payload, more) {
      const { position, segmentStart } = stream.reserve(payload.length, more?.atMs ?? 0, rollAt(SMALL.segmentBytes));
      stream.advance(recordOf(payload, more), payload.length, segmentStart, (batch += 1));
      cache.append(stream, segmentStart, position, payload);
    },
    journal(more) {
      const journal = new Journal({
        files, layout, room, clock, log,
        directoryId: Buffer.from("01234567"),
        fsync: false,
        fileBytes: SMALL.journalBytes,
        firstSequence: 1,
        firstBatch: 1,
        olderFiles: 0,
        apply: (entry, at) => told.push(`apply ${String(entry.change.payload)} in ${at}`),
        batchSettled: () => told.push("batch"),
        sealed: (file) => told.push(`sealed ${file.sequence}`),
        fault: (error) => faults.push(error),
        ...more,
      });
      journals.push(journal);
      return journal;
    },
    entry: (stream, label, more) => ({
      kind: RecordKind.append,
      stream,
      change: recordOf(label),
      position: 0,
      segmentStart: 0,
      bypassed: null,
      generation: stream.generation,
      settle: (how: Settlement) => told.push(`${label} ${how}`),
      companion: null,
      ...more,
    }),
  };
}
