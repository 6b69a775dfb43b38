// Takes an archive of streams apart as it arrives.

import type { ClientInput } from "../../command/verb.js";
import { MAX_HEAD_BYTES, parseHead, type StreamHead } from "./stream-head.js";
import { ARCHIVE_END, BLOCK_BYTES, parseTarHeader, tarPadding, type TarEntry } from "./tar.js";

/** Zeros at the end of an archive: tar fills its last record with them. More are a hole where streams were. */
const MAX_END_BYTES = 64 * 1024;

/** Why an archive can't be read on. */
export interface ArchiveFault {
  readonly kind: "fault";
  readonly words: string;
}

/** A stream of the archive: its data follows, and is to be taken with {@link ArchiveReader.take}. */
export interface ArchivedStream {
  readonly kind: "stream";
  readonly head: StreamHead;
}

/** Reads the streams of an archive in their order. Memory is bounded by one head or one piece. */
export class ArchiveReader {
  readonly #input: AsyncIterator<Uint8Array>;
  #parts: Uint8Array[] = [];
  #size = 0;
  #padding = 0;
  #hasBegun = false;

  constructor(input: ClientInput) {
    this.#input = input[Symbol.asyncIterator]();
  }

  /** The next stream, once all data of the last one was taken; `null` where both the archive and the input end. */
  async next(): Promise<ArchivedStream | null | ArchiveFault> {
    if ((await this.take(this.#padding)) === null) return CUT;
    this.#padding = 0;
    const entry = await this.#header();
    if (entry === null) return this.#end();
    if ("kind" in entry) return entry;
    if (!entry.name.endsWith(".json") || entry.size > MAX_HEAD_BYTES)
      return fault(`${entry.name} is no head of a stream`);
    const text = await this.take(entry.size);
    if (text === null || (await this.take(tarPadding(entry.size).length)) === null) return CUT;
    const head = parseHead(text.toString());
    if ("fault" in head) return fault(`${entry.name} ${head.fault}`);
    const data = await this.#header();
    if (data === null) return CUT;
    if ("kind" in data) return data;
    if (data.size !== head.bytes || data.name !== entry.name.replace(/json$/, "data"))
      return fault(`${data.name} is not the data of ${entry.name}`);
    this.#padding = tarPadding(data.size).length;
    return { kind: "stream", head };
  }

  /** The next bytes of the data; `null` where the input ends before. */
  async take(length: number): Promise<Buffer | null> {
    while (this.#size < length) {
      const { value, done } = await this.#input.next();
      if (done === true) return null;
      this.#parts.push(value);
      this.#size += value.byteLength;
    }
    const whole = Buffer.concat(this.#parts, this.#size);
    const rest = whole.subarray(length);
    this.#parts = [rest];
    this.#size = rest.length;
    return whole.subarray(0, length);
  }

  /** Behind the first block of zeros: a lone one, or one with something behind it, was a header. */
  async #end(): Promise<null | ArchiveFault> {
    let bytes = BLOCK_BYTES;
    for (;;) {
      const rest = this.#parts.splice(0);
      this.#size = 0;
      if (rest.some((part) => part.some((byte) => byte !== 0)))
        return fault("the archive is damaged, or another one follows: there is more behind its end");
      bytes += rest.reduce((sum, { length }) => sum + length, 0);
      if (bytes > MAX_END_BYTES) return fault("the archive is damaged: it ends with more zeros than an archive has");
      const { value, done } = await this.#input.next();
      if (done === true) return bytes < ARCHIVE_END.length ? CUT : null;
      this.#parts.push(value);
    }
  }

  /** The next header; `null` for a block of zeros. */
  async #header(): Promise<TarEntry | null | ArchiveFault> {
    const block = await this.take(BLOCK_BYTES);
    if (block === null) return this.#hasBegun ? CUT : fault("the input is no archive of streams: it is too short");
    this.#hasBegun = true;
    const entry = parseTarHeader(block);
    if (entry === "end") return null;
    return entry ?? fault("the input is no archive of streams, or damaged");
  }
}

const CUT: ArchiveFault = fault("the archive is cut off");

function fault(words: string): ArchiveFault {
  return { kind: "fault", words };
}
