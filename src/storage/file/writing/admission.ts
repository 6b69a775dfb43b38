import {
  DamagedStreamError,
  type AppendRecord,
  type Position,
  type Rejection,
  type Settlement,
} from "../../storage.js";
import { crc32InTurns } from "../format/crc32.js";
import type { FileStream, HeldEntry, Place, ReservedSegment, SegmentRoll } from "../memory/file-stream.js";
import { isBusy, isDiskFull } from "../disk/files.js";
import type { Flusher } from "../segments/flusher.js";
import { emptyChange } from "../journal/frame-encoder.js";
import type { Journal } from "../journal/journal.js";
import { makesRoom, renewed, type JournalEntry } from "../journal/journal-entry.js";
import { RecordKind, type RecordKindCode } from "../format/record.js";
import type { DiskSpace } from "../disk/disk-space.js";
import type { StreamFiles } from "../segments/stream-files.js";

/** Where changes go, and what bounds them. Sizes in bytes. */
export interface AdmissionOptions {
  readonly journal: Journal;
  readonly segmentRoll: SegmentRoll;
  readonly flusher: Pick<Flusher, "lacksRoom" | "isBusy">;
  readonly diskSpace: DiskSpace;
  /** A payload of this size goes to its segment first, past the journal. */
  readonly bypassBytes: number;
  readonly tailCacheBytes: number;
}

type Settle = JournalEntry["settle"];

/** Payload that may wait for the disk before changes are refused. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
/** Payload that may wait for its segment before changes are refused, if the tail cache is smaller than that. */
const MIN_UNWRITTEN_LIMIT_BYTES = 16 * 1024 * 1024;

/** For a barrier whose decision rests on changes that have failed: no stream ever has this generation. */
const VOID_GENERATION = -1;

/**
 * Brings changes to the journal, a stream's in the order of their positions: those after a large payload on its way to
 * a segment wait for it.
 */
export class Admission {
  readonly #parts: StreamFiles;
  readonly #options: AdmissionOptions;
  readonly #maxUnwrittenBytes: number;
  /** Payload on its way to a segment, or behind such in its stream. */
  #heldBytes = 0;

  constructor(parts: StreamFiles, options: AdmissionOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#maxUnwrittenBytes = Math.max(options.tailCacheBytes, MIN_UNWRITTEN_LIMIT_BYTES);
  }

  /** Why a change with `length` bytes of payload is not taken now; `null` when it is. */
  admit(length: number): Rejection | null {
    if (this.#parts.state.failure !== null) return "storage-unavailable";
    const journal = this.#options.journal;
    const { rejection } = journal.refusal;
    if (rejection !== null) return rejection;
    if (this.#isBehind) return this.#options.flusher.lacksRoom ? "storage-full" : "overloaded";
    const waitingBytes = journal.queuedBytes + this.#heldBytes;
    return waitingBytes > 0 && waitingBytes + length > MAX_QUEUED_BYTES ? "overloaded" : null;
  }

  /** Why a deletion or a trim is not taken now: it makes room, so that no lack of room refuses it. */
  admitFreeing(): Rejection | null {
    if (this.#parts.state.failure !== null) return "storage-unavailable";
    return this.#options.journal.refusal.rejection === "overloaded" ? "overloaded" : null;
  }

  /** What is wrong with the disk, so that changes, or at least large ones, are refused or wait; `null` for nothing. */
  get trouble(): string | null {
    if (this.#parts.state.syncs.isHanging) return "the disk does not answer";
    const { journal, diskSpace, flusher } = this.#options;
    const { rejection } = journal.refusal;
    if (diskSpace.isFull || rejection === "storage-full" || (flusher.lacksRoom && this.#isBehind))
      return "the disk is full";
    return rejection === "overloaded" || (flusher.isBusy && this.#isBehind) ? "no more files can be opened" : null;
  }

  /** Whether too many bytes wait in memory for their segments. */
  get #isBehind(): boolean {
    return this.#parts.cache.unwrittenBytes > this.#maxUnwrittenBytes;
  }

  /** Takes an admitted change; it settles later. */
  put(
    stream: FileStream,
    kind: RecordKindCode,
    change: AppendRecord,
    settle: Settle,
    companion: JournalEntry | null = null,
  ): void {
    if (change.payload.length >= this.#options.bypassBytes) this.#bypass(stream, kind, change, settle, companion);
    else this.#submit(this.#entry(stream, kind, change, settle, companion));
  }

  /** Takes a trim: the stream begins at `place` once that is durable. */
  trim(stream: FileStream, place: Place, atMs: number, settle: Settle, companion: JournalEntry | null): void {
    const { generation } = stream;
    const { position, segmentStart } = place;
    const kind = RecordKind.trim;
    const change = emptyChange(atMs);
    this.#submit({ kind, stream, change, position, segmentStart, bypassed: null, generation, settle, companion });
  }

  /** Submits a barrier. It fails where the stream does not end at `expectedTail`: what that rested on has failed. */
  barrier(stream: FileStream, settle: (how: Settlement) => void, expectedTail?: Position): void {
    if (this.#parts.state.failure !== null) return settle("storage-unavailable");
    if (stream.pending === 0 && stream.held === null) return settle("durable");
    const isVoid = expectedTail !== undefined && expectedTail !== stream.reservedTail;
    const entry = this.#entry(stream, null, emptyChange(0), settle);
    this.#submit(isVoid ? { ...entry, generation: VOID_GENERATION } : entry);
  }

  #entry(
    stream: FileStream,
    kind: RecordKindCode | null,
    change: AppendRecord,
    settle: Settle,
    companion: JournalEntry | null = null,
  ): JournalEntry {
    const { position, segmentStart } = stream.reserve(change.payload.length, change.atMs, this.#options.segmentRoll);
    const { generation } = stream;
    return { kind, stream, change, position, segmentStart, bypassed: null, generation, settle, companion };
  }

  #submit(entry: JournalEntry): void {
    const journal = this.#options.journal;
    const { held } = entry.stream;
    if (held === null) return journal.enqueue(entry);
    const { length } = entry.change.payload;
    this.#heldBytes += length;
    const leave = (next: () => void): void => {
      this.#heldBytes -= length;
      next();
    };
    // A touch, and what makes room, do not depend on what failed, unless that was the creation.
    const isFree = (): boolean => (entry.kind === RecordKind.touch || makesRoom(entry)) && !entry.stream.deleted;
    const go = (): void => leave(() => journal.enqueue(isFree() ? renewed(entry) : entry));
    const fail = (how: Settlement): void => {
      // The deletion of a damaged stream is decided in another way.
      if (isFree() && !(how === "stream-damaged" && makesRoom(entry))) go();
      else leave(() => entry.settle?.(how));
    };
    held.push({ go, fail });
  }

  /** A large payload goes to its segment, is synced there, and only then its record goes to the journal. */
  #bypass(
    stream: FileStream,
    kind: RecordKindCode,
    change: AppendRecord,
    settle: Settle,
    companion: JournalEntry | null,
  ): void {
    const segmentBefore = stream.reservedSegment;
    const entry = this.#entry(stream, kind, change, settle, companion);
    const { length } = change.payload;
    this.#heldBytes += length;
    const go = (): void => {
      // What came before it failed, so this fails too: another may have its place by now.
      if (entry.generation !== stream.generation) return void this.#release(stream, entry);
      stream.held = [];
      const written = this.#parts.writer.bypass(stream, entry.segmentStart, entry.position, change.payload);
      written
        .then(() => crc32InTurns(change.payload))
        .then(
          (crc) => this.#release(stream, { ...entry, bypassed: { length, crc } }),
          (error: Error) => this.#bypassFailed(entry, segmentBefore, error),
        );
    };
    const fail = (how: Settlement): void => {
      this.#heldBytes -= length;
      settle?.(how);
    };
    if (stream.held === null) go();
    else stream.held.push({ go, fail });
  }

  #release(stream: FileStream, entry: JournalEntry): void {
    // What was written of a void one is cut off before the segment is next written to.
    if (entry.generation !== stream.generation) stream.disk.fitted.delete(entry.segmentStart);
    this.#heldBytes -= entry.change.payload.length;
    const waiting = takeHeld(stream);
    this.#options.journal.enqueue(entry);
    goOn(stream, waiting);
  }

  #bypassFailed(entry: JournalEntry, segmentBefore: ReservedSegment, error: Error): void {
    const { stream } = entry;
    const how = settlementOf(error);
    if (how === "storage-unavailable") this.#parts.state.fail(error);
    if (how === "storage-full")
      this.#options.diskSpace.lacked({
        offset: entry.position - entry.segmentStart,
        length: entry.change.payload.length,
      });
    // Changes settle in the order of their calls: those before this one first. Those after it are held until then.
    this.#options.journal.enqueue(
      this.#entry(stream, null, emptyChange(0), () => this.#failBypassed(entry, segmentBefore, how)),
    );
  }

  #failBypassed(entry: JournalEntry, segmentBefore: ReservedSegment, how: Settlement): void {
    const { stream } = entry;
    const isInPlace = entry.generation === stream.generation;
    if (isInPlace) {
      stream.reservedTail = entry.position;
      stream.reservedSegment = segmentBefore;
    }
    // What was written of it is cut off before the segment is next written to.
    stream.disk.fitted.delete(entry.segmentStart);
    this.#heldBytes -= entry.change.payload.length;
    const waiting = takeHeld(stream);
    entry.settle?.(how);
    if (isInPlace) for (const next of waiting) next.fail(how);
    // What came before it has failed, too: the journal tells what waits behind that from what has its place since.
    else goOn(stream, waiting);
  }
}

function settlementOf(error: Error): Settlement {
  if (error instanceof DamagedStreamError) return "stream-damaged";
  return isDiskFull(error) ? "storage-full" : isBusy(error) ? "overloaded" : "storage-unavailable";
}

function goOn(stream: FileStream, waiting: readonly HeldEntry[]): void {
  for (const next of waiting) {
    // The next large payload makes the rest wait again.
    const { held } = stream;
    if (held === null) next.go();
    else held.push(next);
  }
}

function takeHeld(stream: FileStream): readonly HeldEntry[] {
  const held = stream.held ?? [];
  stream.held = null;
  return held;
}
