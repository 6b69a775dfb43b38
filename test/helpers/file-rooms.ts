import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { FileStream } from "../../src/storage/file/memory/file-stream.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { Journal, type JournalOptions } from "../../src/storage/file/journal/journal.js";
import type { JournalEntry, JournalListener } from "../../src/storage/file/journal/journal-entry.js";
import { SMALL_JOURNAL_BYTES } from "../../src/storage/file/journal/journal-file.js";
import { EngineState, type EngineParts } from "../../src/storage/file/disk/engine-state.js";
import { DiskSpace } from "../../src/storage/file/disk/disk-space.js";
import { RecordKind } from "../../src/storage/file/format/record.js";
import { streamFiles, type StreamFiles } from "../../src/storage/file/segments/stream-files.js";
import type { AppendRecord, Settlement } from "../../src/storage/storage.js";
import { configOf, keptLog, recordOf, rollAt, SMALL, type LogLine } from "./engine.js";
import { ManualClock } from "./manual-clock.js";
import { tempDir } from "./temp-dir.js";
import { WatchedFiles } from "./watched-files.js";

/** The rooms of the engine below the engine itself, in a directory of their own. */
export interface FileRooms extends Omit<StreamFiles, "log"> {
  /** What the parts below share, as the engine itself does. */
  readonly parts: StreamFiles;
  readonly state: EngineState;
  readonly layout: Layout;
  readonly files: WatchedFiles;
  readonly diskSpace: DiskSpace;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly faults: readonly Error[];
  readonly told: string[];
  /** A stream that is durable and empty. */
  stream(name?: string): FileStream;
  /** Makes `payload` durable in the stream, as the journal would. */
  advance(stream: FileStream, payload: Buffer, more?: Partial<AppendRecord>): void;
  /** A journal that tells in `told` what it does. */
  journal(more?: Partial<JournalOptions & JournalListener>): RoomsJournal;
  /** An entry that tells in `told` how it settles. */
  entry(stream: FileStream, label: string, more?: Partial<JournalEntry>): JournalEntry;
}

/** Ends the rooms' engine; resolves when the trash does nothing more. */
export async function ended({ state, trash }: FileRooms): Promise<void> {
  state.stop();
  await trash.idle();
}

/** A journal that knows its listener before it is opened. */
export class RoomsJournal extends Journal {
  readonly #listener: JournalListener;

  constructor(parts: EngineParts, options: JournalOptions, listener: JournalListener) {
    super(parts, options);
    this.#listener = listener;
  }

  override open(): Promise<void> {
    return super.open(this.#listener);
  }
}

/** Makes the rooms, with a clock that keeps time unless it is another. */
export function fileRooms(clock = new ManualClock()): FileRooms {
  const layout = new Layout(join(tempDir(), "data"));
  for (const directory of [layout.journal, layout.streams, layout.trash]) mkdirSync(directory, { recursive: true });
  const files = new WatchedFiles();
  const { log, lines } = keptLog();
  const faults: Error[] = [];
  const told: string[] = [];
  const state = new EngineState({ clock, log }, (error) => faults.push(error));
  state.on("blocked", ({ message }) => told.push(`blocked: ${message}`));
  const parts = streamFiles({ files, layout, clock, log, state }, { ...SMALL, threads: 8 });
  const { cache } = parts;
  const diskSpace = new DiskSpace(parts);
  let made = 0;
  let batch = 0;
  return {
    ...parts,
    parts,
    files,
    diskSpace,
    clock,
    log: lines,
    faults,
    told,
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
      const listener = {
        apply: (entry: JournalEntry, at: number) => void told.push(`apply ${String(entry.change.payload)} in ${at}`),
        batchSettled: () => void told.push("batch"),
        sealed: (file: { readonly sequence: number }) => void told.push(`sealed ${file.sequence}`),
        ...more,
      };
      const options = {
        diskSpace,
        directoryId: Buffer.from("01234567"),
        fsync: false,
        fileBytes: SMALL.journalBytes,
        smallBytes: SMALL_JOURNAL_BYTES,
        firstSequence: 1,
        firstBatch: 1,
        olderFiles: 0,
        ...more,
      };
      return new RoomsJournal(parts, options, listener);
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
