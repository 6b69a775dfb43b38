import type { FileStream } from "./file-stream.js";
import type { Files, OpenFile } from "./files.js";

/** Bytes of zeros written ahead of the frames at a time: a frame then changes no metadata, and its sync is one write. */
const ALLOCATION_STEP_BYTES = 8 * 1024 * 1024;

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
  #closing: Promise<void> | null = null;

  /** Opens the file at `path`, new or used before, with room for the first frames. */
  static async open(files: Files, path: string, sequence: number, limitBytes: number): Promise<JournalFile> {
    const opened: OpenFile[] = [];
    const open = async (mode: "write" | "log"): Promise<OpenFile> => {
      const file = await files.open(path, mode);
      opened.push(file);
      return file;
    };
    try {
      const plainFile = await open("write");
      const file = new JournalFile(sequence, path, await open("log"), plainFile, await plainFile.size(), limitBytes);
      if (file.wantsAllocation) await file.allocate();
      return file;
    } catch (error) {
      for (const file of opened) await file.close();
      throw error;
    }
  }

  /** `plainFile` is the same file, opened so that writes are not synced; `allocatedBytes` of it exist. */
  constructor(sequence: number, path: string, file: OpenFile, plainFile: OpenFile, allocatedBytes: number, limitBytes: number) {
    this.sequence = sequence;
    this.path = path;
    this.file = file;
    this.#plainFile = plainFile;
    this.#allocatedBytes = allocatedBytes;
    this.#limitBytes = limitBytes;
  }

  /** Whether a frame of `length` bytes may be written now, without growing the file. */
  hasRoom(length: number): boolean {
    return this.offset + length <= this.#allocatedBytes || this.isAllocated;
  }

  /** Whether the zeros reach to the file's full size. */
  get isAllocated(): boolean {
    return this.#allocatedBytes >= this.#limitBytes;
  }

  /** Whether more zeros should be on their way. */
  get wantsAllocation(): boolean {
    return !this.isAllocated && this.#allocatedBytes - this.offset < ALLOCATION_STEP_BYTES / 2;
  }

  /** Writes the next step of zeros and makes them permanent. Frames never go there before it is done. */
  async allocate(): Promise<void> {
    const length = Math.min(ALLOCATION_STEP_BYTES, this.#limitBytes - this.#allocatedBytes);
    await this.#plainFile.write(Buffer.alloc(length), this.#allocatedBytes);
    await this.#plainFile.sync();
    this.#allocatedBytes += length;
  }

  /** Closes the file; again does nothing more. */
  close(): Promise<void> {
    this.#closing ??= this.file.close().then(() => this.#plainFile.close());
    return this.#closing;
  }
}
