import { makesRoom, type JournalEntry } from "./journal-entry.js";
import type { JournalFile } from "./journal-file.js";
import {
  alignUp,
  encodeIdentity,
  encodeRecord,
  FRAME_HEADER_BYTES,
  RecordKind,
  recordLength,
  sealFrame,
  type JournalRecord,
  type StreamIdentity,
} from "../format/record.js";
import type { FileStream } from "../memory/file-stream.js";
import type { Position } from "../../storage.js";

/** The longest frame, where files are large enough. */
const MAX_FRAME_BYTES = 1024 * 1024;
/** What a record has beside its payload, and who its stream and its companion's are, with the longest names. */
const MAX_HEADS_BYTES = 64 * 1024;
const INITIAL_BUFFER_BYTES = 64 * 1024;

/** Packs entries into frames. One frame at a time: the buffer is used again for the next. */
export class FrameEncoder {
  /** The most bytes of a frame: it ends before the record that would make it longer, unless that is its first. */
  readonly maxFrameBytes: number;
  readonly #directoryId: Buffer;
  readonly #syncs: boolean;
  #buffer = Buffer.allocUnsafeSlow(INITIAL_BUFFER_BYTES);
  /** Of the frame that is being packed: where its records end, and how many there are. */
  #end = FRAME_HEADER_BYTES;
  #records = 0;

  /**
   * `syncs`: a file keeps its allocated length whatever comes, so its frames vouch for it. Files take `fileBytes` at
   * most: a frame has a quarter of these at most, as is left for the last one.
   */
  constructor(directoryId: Buffer, syncs: boolean, fileBytes: number) {
    this.#directoryId = directoryId;
    this.#syncs = syncs;
    this.maxFrameBytes = Math.min(MAX_FRAME_BYTES, Math.floor(fileBytes / 4));
  }

  /** The most bytes that the next frame of `queue` takes: its first record is taken however long that is. */
  longestFrameOf(queue: readonly JournalEntry[]): number {
    const first = queue.find(writesRecord);
    const payloadBytes = first === undefined || first.bypassed !== null ? 0 : first.change.payload.length;
    return Math.max(this.maxFrameBytes, payloadBytes + MAX_HEADS_BYTES);
  }

  /** Whether all that `queue` has to write makes room, and the first of it fits into what the file has on disk. */
  fitsReserve(file: JournalFile | null, queue: readonly JournalEntry[]): boolean {
    const entries = queue.filter(writesRecord);
    const [first] = entries;
    if (file === null || first === undefined || !entries.every(makesRoom)) return false;
    const { companion } = first;
    const ofCompanion = companion === null ? 0 : lengthOf(companion, identityFor(companion.stream, file));
    return file.fits(FRAME_HEADER_BYTES + lengthOf(first, identityFor(first.stream, file)) + ofCompanion);
  }

  /** Where the frame after `frame`, which is at `offset`, begins. */
  endOf(offset: number, frame: Buffer): number {
    return alignUp(offset + frame.length);
  }

  /** Packs as many of `queue` as fit, about `most` of them; `frame` is null when they all have nothing to write. */
  encode(
    queue: readonly JournalEntry[],
    most: number,
    file: JournalFile,
    batch: number,
  ): { readonly taken: number; readonly frame: Buffer | null } {
    this.#end = FRAME_HEADER_BYTES;
    this.#records = 0;
    let taken = 0;
    for (const entry of queue) {
      // Entries without a record make no batch of their own while one with a record waits behind them.
      if (taken >= most && this.#records > 0) break;
      if (entry.kind !== null && entry.generation === entry.stream.generation && !this.#take(entry, file)) break;
      taken += 1;
    }
    if (this.#records === 0) return { taken, frame: null };
    return { taken, frame: this.#seal(this.#end, this.#records, file, batch) };
  }

  /** Packs an entry and its companion, both or neither; false when they are for the next frame. */
  #take(entry: JournalEntry, file: JournalFile): boolean {
    const { companion } = entry;
    const identity = identityFor(entry.stream, file);
    const companionIdentity = companion === null ? null : identityFor(companion.stream, file);
    const length = lengthOf(entry, identity) + (companion === null ? 0 : lengthOf(companion, companionIdentity));
    if (this.#records > 0 && this.#end + length > this.maxFrameBytes) return false;
    this.#reserve(this.#end, length);
    this.#put(entry, identity, file);
    if (companion !== null) this.#put(companion, companionIdentity, file);
    return true;
  }

  /** `identity` is set when the file does not know the stream yet. */
  #put(entry: JournalEntry, identity: Buffer | null, file: JournalFile): void {
    const { kind, stream } = entry;
    if (kind === null) return;
    if (identity !== null) {
      bind(stream, file);
      if (kind !== RecordKind.create) this.#write(bindRecord(stream), identity);
    }
    this.#write(recordOf(entry, kind), kind === RecordKind.create ? identity : null);
    file.bypassedBytes += entry.bypassed?.length ?? 0;
  }

  #write(record: JournalRecord, identity: Buffer | null): void {
    this.#end = encodeRecord(this.#buffer, this.#end, record, identity);
    this.#records += 1;
  }

  /** A frame without records. */
  encodeEmpty(file: JournalFile, batch: number): { readonly frame: Buffer } {
    return { frame: this.#seal(FRAME_HEADER_BYTES, 0, file, batch) };
  }

  #seal(end: number, records: number, file: JournalFile, batch: number): Buffer {
    const fileBytes = this.#syncs ? file.allocatedBytes : 0;
    const { sequence, nextHandle: handles } = file;
    sealFrame(this.#buffer, end, records, { sequence, batch, directoryId: this.#directoryId, handles, fileBytes });
    return this.#buffer.subarray(0, end);
  }

  #reserve(end: number, length: number): void {
    if (end + length <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(end + length, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, end);
    this.#buffer = grown;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** What a bind record takes besides the identity itself. */
const BIND_BYTES = recordLength(emptyChange(0), NO_BYTES, false);

/** A change that changes nothing, at a time. */
export function emptyChange(atMs: number): JournalEntry["change"] {
  return { payload: NO_BYTES, messages: 1, closes: false, producer: null, seq: null, atMs };
}

/** A record that says what a handle stands for, of a stream that reaches `position` at least. */
export function encodeBinding(handle: number, identity: StreamIdentity, position: Position): Buffer {
  const json = encodeIdentity(identity);
  const change = emptyChange(0);
  const record = Buffer.alloc(recordLength(change, json, false));
  const binding = { kind: RecordKind.bind, handle, position, segmentStart: 0, change, identity, bypassed: null };
  encodeRecord(record, 0, binding, json);
  return record;
}

/** What says which stream it is, where the file does not know it yet. */
function identityFor(stream: FileStream, file: JournalFile): Buffer | null {
  return stream.boundSequence === file.sequence ? null : encodeIdentity(stream);
}

function lengthOf(entry: JournalEntry, identity: Buffer | null): number {
  return recordLength(entry.change, identity, entry.bypassed !== null) + (identity === null ? 0 : BIND_BYTES);
}

function bind(stream: FileStream, file: JournalFile): void {
  stream.boundSequence = file.sequence;
  stream.handle = file.nextHandle;
  file.nextHandle += 1;
  file.streams.add(stream);
}

/** Says what a handle means; its position is the stream's durable tail, so that recovery knows what its files hold. */
function bindRecord(stream: FileStream): JournalRecord {
  const { handle, state, config } = stream;
  const change = emptyChange(config.createdAtMs);
  const { tail: position } = state;
  return { kind: RecordKind.bind, handle, position, segmentStart: 0, change, identity: stream, bypassed: null };
}

function recordOf(entry: JournalEntry, kind: JournalRecord["kind"]): JournalRecord {
  const { stream, position, segmentStart, change, bypassed } = entry;
  return { kind, handle: stream.handle, position, segmentStart, change, identity: null, bypassed };
}

/** Whether an entry has something to write: not a barrier, nor what was decided on a change that failed. */
export function writesRecord({ kind, generation, stream }: JournalEntry): boolean {
  return kind !== null && generation === stream.generation;
}
