// Compresses answers, on other threads than the one that serves.

import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Turns } from "../../ops/turns.js";

/** A shorter answer goes out as it is: about this much fits into one packet anyway. */
const MIN_BYTES = 1024;
/** Answers compressed at a time. One processor is left to serve, and most of Node's threads to the disk. */
const MAX_AT_WORK = Math.max(1, Math.min(4, availableParallelism() - 1));
/** Of all answers that are compressed or wait for it; the next ones go out as they are. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Twice as fast as zlib's own level, for answers that are 4% longer (JSON of chats). */
const LEVEL = 4;
/** Of the pieces in which zlib gives its output, which are joined by the thread that serves. */
const PIECE_BYTES = 64 * 1024;

const compress = promisify(gzip);

/** Compresses answers with gzip, a bounded number at a time. */
export class Compression {
  readonly #turns = new Turns(MAX_AT_WORK);
  #heldBytes = 0;

  /** Whether an answer of this length can be compressed now. */
  takes(bytes: number): boolean {
    return bytes >= MIN_BYTES && this.#heldBytes + bytes <= MAX_HELD_BYTES;
  }

  /**
   * The compressed bytes; `null` where nobody wants them any more when their turn comes. Rejects when
   * memory is short.
   */
  async gzip(body: Buffer, isWanted: () => boolean): Promise<Buffer | null> {
    this.#heldBytes += body.length;
    try {
      return await this.#turns.run(async () =>
        isWanted() ? await compress(body, { level: LEVEL, chunkSize: PIECE_BYTES }) : null,
      );
    } finally {
      this.#heldBytes -= body.length;
    }
  }
}
