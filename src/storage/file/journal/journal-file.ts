import { allEnded } from "../disk/all-ended.js";
import type { FileStream } from "../memory/file-stream.js";
import { writeOrCutOff, type Files, type OpenFile } from "../disk/files.js";
import type { Lack } from "../disk/disk-space.js";

/**
 * Bytes of zeros written ahead of the frames at a time: a frame then changes no metadata, and its sync is one write.
 * In small steps, so that no frame's sync waits long behind one of them.
 */
const ALLOCATION_STEP_BYTES = 2 * 1024 * 1024;
/** How far they are to be ahead, or three quarters of what there is. */
const ALLOCATED_AHEAD_BYTES = 4 * 1024 * 1024;
const ZEROS = Buffer.alloc(ALLOCATION_STEP_BYTES);

/** What a file takes where its checkpoint keeps up: two such files hold a busy journal, each filled with zeros once. */
export const SMALL_JOURNAL_BYTES = 8 * 1024 * 1024;
/** A checkpoint syncs each stream of its file: with more streams than this, files are longer and checkpoints rarer. */
const SMALL_STREAMS = 32;

/** Payload that went past the journal counts towards a file's size at this fraction of it. */
const BYPASS_WEIGHT = 1 / 16;

/** Some hundreds of deletions. */
const MAX_RESERVE_BYTES = 128 * 1024;

/** The first step of zeros in a file of `fileBytes`. */
export function firstAllocationBytes(fileBytes: number): number {
  return Math.min(ALLOCATION_STEP_BYTES, fileBytes);
}

/** How far a journal file is, and how its checkpoints are. */
export interface JournalPressure {
  /** The most that a file may take. */
  readonly fileBytes: number;
  /** What it takes while all is well; usually {@link SMALL_JOURNAL_BYTES}. */
  readonly smallBytes: number;
  /** Streams with records in it. */
  readonly streams: number;
  /** Whether a file before it waits for its checkpoint. */
  readonly isBehind: boolean;
}

/** At how many bytes a journal file makes way for the next: at the most where the checkpoints are behind. */
export function journalSizeBytes({ fileBytes, smallBytes, streams, isBehind }: JournalPressure): number {
  return isBehind ? fileBytes : Math.min(fileBytes, smallBytes * Math.max(1, streams / SMALL_STREAMS));
}

/** What is left of a file of `sizeBytes` for deletions and trims alone: a full disk takes those that make room. */
export function reserveBytes(sizeBytes: number): number {
  return Math.min(MAX_RESERVE_BYTES, sizeBytes / 16);
}

/** Where a file of `sizeBytes` is full, so that one more frame fits, and the reserve. */
export function limitBytes(sizeBytes: number, maxFrameBytes: number, bypassedBytes: number): number {
  return sizeBytes - reserveBytes(sizeBytes) - Math.min(maxFrameBytes, sizeBytes / 4) - bypassedBytes * BYPASS_WEIGHT;
}

/** Which file it is, and how long. */
export interface JournalFileSizes {
  readonly sequence: number;
  /** It grows beyond these only for a record longer than a quarter of them: where names are long, and files small. */
  readonly limitBytes: number;
  /** So much of it is zeros when it is opened. */
  readonly readyBytes: number;
  /** Called after each step of these. */
  readonly grown?: () => void;
}

/** One file of the journal while it is written. */
export class JournalFile {
  readonly sequence: number;
  readonly path: string;
  /** Opened so that each write is synced. */
  readonly file: OpenFile;
  /** Where the next frame goes. */
  offset = 0;
  /** The streams with records here. */
  readonly streams = new Set<FileStream>();
  nextHandle = 0;
  /** Bytes that went to segments with only their record here. */
  bypassedBytes = 0;
  readonly #plainFile: OpenFile;
  readonly #limitBytes: number;
  #allocatedBytes: number;
  #allocating: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  /** Opens the file at `path`, new or used before, with room for the first `readyBytes`. */
  static async open(
    files: Files,
    path: string,
    { sequence, limitBytes, readyBytes, grown }: JournalFileSizes,
  ): Promise<JournalFile> {
    const plainFile = await files.open(path, "write");
    const file = await files.open(path, "log").catch(async (error: unknown) => {
      await plainFile.close();
      throw error;
    });
    try {
      const opened = new JournalFile(sequence, path, file, plainFile, await plainFile.size(), limitBytes);
      while (opened.allocatedBytes < readyBytes) {
        await opened.allocate();
        grown?.();
      }
      return opened;
    } catch (error) {
      await file.close();
      await plainFile.close();
      throw error;
    }
  }

  /** `plainFile` is the same file, opened so that writes are not synced; `allocatedBytes` of it exist. */
  constructor(
    sequence: number,
    path: string,
    file: OpenFile,
    plainFile: OpenFile,
    allocatedBytes: number,
    limitBytes: number,
  ) {
    this.sequence = sequence;
    this.path = path;
    this.file = file;
    this.#plainFile = plainFile;
    this.#allocatedBytes = allocatedBytes;
    this.#limitBytes = limitBytes;
  }

  /** Whether a frame of `length` bytes may be written now: over zeros that are there, or once all of them are. */
  hasRoom(length: number): boolean {
    return this.isAllocated || this.fits(length + reserveBytes(this.#limitBytes));
  }

  /** Whether a frame of `length` bytes fits into what the file has on disk already. */
  fits(length: number): boolean {
    return this.offset + length <= this.#allocatedBytes;
  }

  /** So long the file is on disk. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Whether the zeros reach to the file's full size. */
  get isAllocated(): boolean {
    return this.#allocatedBytes >= this.#limitBytes;
  }

  /** Whether more zeros should be on their way, in a file that is to grow to `sizeBytes`. */
  wantsAllocation(sizeBytes: number): boolean {
    if (this.isAllocated || this.#allocatedBytes >= sizeBytes) return false;
    return this.#allocatedBytes - this.offset < Math.min(ALLOCATED_AHEAD_BYTES, (this.#allocatedBytes * 3) / 4);
  }

  /** Writes the next step of zeros and makes them permanent. Frames never go there before it is done. */
  allocate(): Promise<void> {
    return (this.#allocating = this.#allocate());
  }

  async #allocate(): Promise<void> {
    const { offset, length } = this.nextAllocation;
    // What there was room for goes back: the checkpoint that frees the journal needs it more.
    await writeOrCutOff(this.#plainFile, ZEROS.subarray(0, length), offset);
    await this.#plainFile.sync();
    this.#allocatedBytes += length;
  }

  /** Where the next step of zeros goes. */
  get nextAllocation(): Lack {
    return { offset: this.#allocatedBytes, length: firstAllocationBytes(this.#limitBytes - this.#allocatedBytes) };
  }

  /** Closes the file, once nothing is written to it; again does nothing more. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Whoever asked for more zeros hears what became of them.
    await this.#allocating.catch(() => undefined);
    await allEnded([this.file.close(), this.#plainFile.close()]);
  }
}
