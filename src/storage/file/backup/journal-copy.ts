import { join } from "node:path";
import type { Position } from "../../storage.js";
import { DirectoryError } from "../directory/lock.js";
import { readWhole } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { journalSequenceOf, keptSequenceOf, pinnedPath, pinnedSequenceOf } from "../format/layout.js";
import {
  decodeHeads,
  decodeRecordAt,
  RecordKind,
  type Frame,
  type RecordHead,
  type StreamIdentity,
} from "../format/record.js";
import { readJournalFile } from "../journal/journal-reader.js";
import { scanJournal } from "../journal/journal-scanner.js";
import type { CopyPlaces } from "./stream-copy.js";
import { readingFrom } from "./unreadable.js";

/** A payload that the journal only names: its bytes are in a segment, perhaps beyond what any sidecar vouches for. */
export interface LatePayload {
  readonly identity: StreamIdentity;
  readonly batch: number;
  readonly position: Position;
  readonly segmentStart: Position;
  readonly length: number;
  readonly crc: number;
}

/** Copies the journal of a directory, up to a batch, and notes what it says of files that a copy may lack. */
export class JournalCopy {
  /** In the order of the journal. */
  readonly late: LatePayload[] = [];
  readonly #places: CopyPlaces;
  readonly #directoryId: Buffer;
  readonly #deleted = new Set<string>();
  readonly #trimmedTo = new Map<string, Position>();
  /** The directories of streams that the journal creates, in the backup. */
  readonly #created = new Set<string>();
  /** Of two ids with the same name, the one named first is deleted. */
  readonly #idByName = new Map<string, string>();
  /** The file that the next copy begins with: it may have more by then. */
  #sequence = 0;
  /** The last batch before that file; `null` where it is the first. */
  #batchBefore: number | null = null;
  #lastBatch = 0;

  constructor(places: CopyPlaces, directoryId: Buffer) {
    this.#places = places;
    this.#directoryId = directoryId;
  }

  /** Whether the stream is deleted by the end of what was copied, or its bytes before `end` are dropped. */
  isGone(id: string, end: Position): boolean {
    return this.#deleted.has(id) || end <= (this.#trimmedTo.get(id) ?? 0);
  }

  /** Whether the journal creates the stream of a directory in the backup. */
  creates(target: string): boolean {
    return this.#created.has(target);
  }

  /**
   * Makes sure that a start would take the journal as it is, where no server adds to it. Throws a
   * {@link DirectoryError}.
   */
  async assertSound(): Promise<void> {
    const { files, from } = this.#places;
    let hasFrames = false;
    for await (const run of scanJournal({ files, layout: from, directoryId: this.#directoryId }, "strict"))
      hasFrames ||= run.file.standing === "next" && run.frames.length > 0;
    if (!hasFrames) throw this.#tooShort();
  }

  /**
   * Copies what is kept of older journal files. Before any stream: what a checkpoint takes out of these files it brings
   * to the streams' own first.
   */
  async copyKept(): Promise<void> {
    const { files, from, to } = this.#places;
    await files.removeTree(to.journal);
    await files.makeDirectory(to.journal);
    for (const name of await files.list(from.journal)) {
      const bytes = keptSequenceOf(name) === null ? null : await this.#read(join(from.journal, name));
      if (bytes !== null) await replaceFile(files, join(to.journal, name), bytes);
    }
  }

  /** Copies the journal up to and with `batch`, all of it for `null`; again, what came since. */
  async copyTo(batch: number | null): Promise<void> {
    const { files, to } = this.#places;
    // Where no server has the directory open, what one kept for a backup is what its end has left.
    const sequences = (await this.#sequences(batch !== null)).filter((sequence) => sequence >= this.#sequence);
    for (const sequence of sequences) await this.#copyFile(sequence, batch);
    await files.syncDirectory(to.journal);
    if (this.#lastBatch < Math.max(1, batch ?? 1)) throw this.#tooShort();
  }

  #tooShort(): DirectoryError {
    const { journal } = this.#places.from;
    return new DirectoryError(`the journal in ${journal} ends with batch ${this.#lastBatch}, before its time`);
  }

  #read(path: string): Promise<Buffer | null> {
    return readingFrom(path, () => readWhole(this.#places.files, path, "plain"));
  }

  /** Listed twice: a file that is renamed during one list may be missing there, and is renamed only once. */
  async #sequences(withPinned: boolean): Promise<number[]> {
    const { files, from } = this.#places;
    const names = [...(await files.list(from.journal)), ...(await files.list(from.journal))];
    const sequences = names.map((name) => journalSequenceOf(name) ?? (withPinned ? pinnedSequenceOf(name) : null));
    return [...new Set(sequences)].filter((sequence) => sequence !== null).sort((left, right) => left - right);
  }

  async #copyFile(sequence: number, batch: number | null): Promise<void> {
    const { files, from, to } = this.#places;
    const path = from.journalFile(sequence);
    const bytes = (await this.#read(path)) ?? (await this.#read(pinnedPath(path)));
    if (bytes === null) throw new DirectoryError(`journal file ${path} is gone`);
    const lastBatch = sequence === this.#sequence || this.#sequence === 0 ? this.#batchBefore : this.#lastBatch;
    const content = readJournalFile(bytes, { sequence, directoryId: this.#directoryId, lastBatch });
    const frames = content.frames.filter((frame) => batch === null || frame.batch <= batch);
    const end = frames.at(-1)?.nextOffset ?? 0;
    // Behind the batch, a frame may be read half written.
    const damage = content.damages.find(({ offset }) => offset < end);
    if (damage !== undefined)
      throw new DirectoryError(`journal file ${path} is damaged at byte ${damage.offset}: ${damage.problem}`);
    if (frames.length === 0) return;
    this.#note(frames);
    this.#sequence = sequence;
    this.#batchBefore = lastBatch;
    this.#lastBatch = frames.at(-1)?.batch ?? this.#lastBatch;
    const file = await files.open(to.journalFile(sequence), "write");
    try {
      await file.write(bytes.subarray(0, end), 0);
      // Its frames vouch for its length.
      await file.truncate(end);
      await file.truncate(bytes.length);
      await file.sync();
    } finally {
      await file.close();
    }
    this.#places.tally.journalBytes += end;
  }

  #note(frames: readonly Frame[]): void {
    const byHandle = new Map<number, StreamIdentity>();
    for (const frame of frames) {
      for (const head of decodeHeads(frame)) {
        if (head.identity !== null) byHandle.set(head.handle, head.identity);
        const identity = byHandle.get(head.handle);
        if (identity === undefined)
          throw new DirectoryError(`the journal uses handle ${head.handle} without saying what it means`);
        // What was noted when the file was last read is known.
        if (frame.batch > this.#lastBatch) this.#noteRecord(frame, head, identity);
      }
    }
  }

  #noteRecord(frame: Frame, head: RecordHead, identity: StreamIdentity): void {
    const { id, name } = identity;
    const before = this.#idByName.get(name);
    if (head.identity !== null && before !== undefined && before !== id) this.#deleted.add(before);
    this.#idByName.set(name, id);
    if (head.kind === RecordKind.create) this.#created.add(this.#places.to.streamDirectory(name));
    if (head.kind === RecordKind.delete) this.#deleted.add(id);
    if (head.kind === RecordKind.trim) {
      const { position } = decodeRecordAt(frame, head.offset);
      this.#trimmedTo.set(id, Math.max(position, this.#trimmedTo.get(id) ?? 0));
    }
    if (!head.isBypassed) return;
    const { position, segmentStart, bypassed } = decodeRecordAt(frame, head.offset);
    if (bypassed !== null) this.late.push({ identity, batch: frame.batch, position, segmentStart, ...bypassed });
  }
}
