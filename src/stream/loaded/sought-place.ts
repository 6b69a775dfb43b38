// Finds where a read begins that asks for the last messages, or for what came since a time.

import { messagesLength } from "../../protocol/json/json-frame.js";
import {
  TrimmedStreamError,
  type FoundPlace,
  type MaybePromise,
  type Position,
  type Storage,
  type StoredStream,
} from "../../storage/storage.js";
import type { PassedMessages } from "../rules/fork.js";
import { refuse, type Refused } from "../rules/outcome.js";
import { whileScanning, type ReadClient, type Scan } from "../rules/scan-turns.js";

/** A stream in which places are sought. */
export interface SoughtStream {
  readonly stored: StoredStream;
  readonly isJson: boolean;
  retain(): void;
  release(): void;
}

/** How far a place is searched for among messages, and how much is read at a time. */
const MAX_SCAN_BYTES = 64 * 1024 * 1024;
const SCAN_STEP_BYTES = 256 * 1024;

const TOO_FAR = refuse("invalid-offset", { detail: "The place is too far into an append: read from an offset." });

/**
 * Where the last `count` messages begin (in a stream of bytes: appends); "start" where there are no more. Throws
 * StorageBusyError where too many search, and once the `client` has gone.
 */
export function placeOfLast(
  storage: Storage,
  stream: SoughtStream,
  count: number,
  client?: ReadClient,
): Promise<Position | "start" | Refused> {
  const search = async (scan: Scan): Promise<Position | "start" | Refused> => {
    const messages = new MessageScan(storage, stream.stored, scan);
    const countIn = (from: Position, to: Position): MaybePromise<number | null> =>
      stream.isJson ? messages.countBetween(from, to) : 1;
    const found = await storage.placeOfLast(stream.stored, count, countIn);
    const position = found === null ? null : await messages.after(found);
    return position === null ? TOO_FAR : orStart(stream, position);
  };
  return whileRetained(stream, () => whileScanning(client, search));
}

/** Where the first append begins that was made at `atMs` or later; the tail where none was. */
export function placeSince(storage: Storage, stream: SoughtStream, atMs: number): Promise<Position | "start"> {
  return whileRetained(stream, async () => orStart(stream, await storage.placeSince(stream.stored, atMs)));
}

/**
 * Passes `count` messages of a JSON stream from `from` on; `null` where they are too long to be looked through. Throws
 * StorageBusyError where too many search, and TrimmedStreamError.
 */
export function passMessages(
  storage: Storage,
  { stored }: Pick<SoughtStream, "stored">,
  from: Position,
  count: number,
): Promise<PassedMessages | null> {
  return whileScanning(undefined, (scan) => new MessageScan(storage, stored, scan).pass(from, count));
}

/** Retention may drop the beginning before it is read. */
function orStart({ stored }: SoughtStream, position: Position): Position | "start" {
  return position <= stored.earliest && position < stored.state.tail ? "start" : position;
}

async function whileRetained<T>(stream: SoughtStream, work: () => Promise<T>): Promise<T> {
  stream.retain();
  try {
    return await work();
  } finally {
    stream.release();
  }
}

/** What a step has looked through: `bytes`, with `count` whole messages in the first `length` of them. */
interface Passed {
  readonly bytes: number;
  readonly count: number;
  readonly length: number;
}

/** Counts the messages of a JSON stream, each of which is a line, up to a bound. */
class MessageScan {
  readonly #storage: Storage;
  readonly #stored: StoredStream;
  readonly #scan: Scan;
  #scannedBytes = 0;

  constructor(storage: Storage, stored: StoredStream, scan: Scan) {
    this.#storage = storage;
    this.#stored = stored;
    this.#scan = scan;
  }

  /** How many messages are between two positions; `null` beyond the bound. */
  async countBetween(from: Position, to: Position): Promise<number | null> {
    let count = 0;
    for (let at = from; at < to;) {
      const passed = await this.#step(at, to - at, Infinity);
      if (passed === null) return null;
      count += passed.count;
      at += passed.bytes;
    }
    return count;
  }

  /** The position of a place; `null` beyond the bound. What was dropped meanwhile is before the stream's beginning. */
  async after({ position, skip }: FoundPlace): Promise<Position | null> {
    try {
      const passed = await this.pass(position, skip);
      return passed === null ? null : Math.max(passed.position, this.#stored.earliest);
    } catch (error) {
      if (error instanceof TrimmedStreamError) return this.#stored.earliest;
      throw error;
    }
  }

  /** Passes `count` messages from a position on; `null` beyond the bound. Throws TrimmedStreamError. */
  async pass(from: Position, count: number): Promise<PassedMessages | null> {
    const { state } = this.#stored;
    let left = count;
    let at = from;
    while (left > 0 && at < state.tail) {
      const passed = await this.#step(at, state.tail - at, left);
      if (passed === null) return null;
      left -= passed.count;
      at += left > 0 ? passed.bytes : passed.length;
    }
    return { position: at, left };
  }

  /** Passes up to `most` messages in the bytes from a position on; `null` beyond the bound. */
  async #step(at: Position, leftBytes: number, most: number): Promise<Passed | null> {
    if (this.#scannedBytes >= MAX_SCAN_BYTES) return null;
    const wantedBytes = Math.min(leftBytes, SCAN_STEP_BYTES);
    const passed = await this.#scan.step(wantedBytes, async () => {
      const bytes = await this.#storage.read(this.#stored, at, wantedBytes);
      return { ...messagesLength(bytes, most), bytes: bytes.length };
    });
    this.#scannedBytes += passed.bytes;
    return passed;
  }
}
