import { parseOffset } from "../../src/protocol/offset.js";
import { TrimmedStreamError, type Allocate, type Chunk, type ReadFrom, type Stream } from "../../src/stream/loaded/stream.js";
import { observeBeginning } from "./beginnings.js";
import type { ClientParts } from "./client.js";
import { must, type Incarnation } from "./model.js";
import type { Name } from "./names.js";
import type { RunningProcess } from "./running-process.js";

/** What readers are made of. */
export interface ReadersParts extends Omit<ClientParts, "traits"> {
  /** Looks a stream up, and compares what is found with what can be. */
  readonly find: (process: RunningProcess, name: Name) => Promise<Stream | null>;
  /** Lets work go on that nobody waits for. */
  readonly background: (process: RunningProcess, work: Promise<void>) => void;
  /** Told of what must not be. */
  readonly broken: (error: unknown) => void;
}

/** Clients that read, once or as long as a stream goes on. */
export class Readers {
  readonly #parts: ReadersParts;

  constructor(parts: ReadersParts) {
    this.#parts = parts;
  }

  /** Reads a piece of the stream of a name, from its beginning or where others have come to. */
  async read(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#parts.find(process, name);
    if (stream === null) return;
    const incarnation = this.#parts.ledger.incarnationOf(name, stream);
    stream.retain();
    try {
      if (this.#parts.random.chance(0.5)) this.#touch(process, incarnation, stream);
      await this.#locate(process, incarnation, stream);
      observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
      const isFromStart = this.#parts.random.pick([true, false]);
      await this.#readFrom(
        process,
        incarnation,
        stream,
        isFromStart && this.#parts.whims.chance(0.5) ? "start" : isFromStart ? incarnation.earliest : incarnation.seenTo,
      );
      if (process.isAlive) this.#parts.onAnswer(false);
    } finally {
      stream.release();
    }
  }

  #touch(process: RunningProcess, incarnation: Incarnation, stream: Stream): void {
    if (!process.isAlive) return;
    const nowMs = process.clock.nowMs();
    this.#parts.trace?.(`touch ${incarnation.tag} at ${nowMs}`);
    const noted = stream.touch();
    // A deadline that has passed meanwhile is not taken back.
    const counts = nowMs < incarnation.earliestDeadlineMs && !this.#parts.ledger.sawFull;
    if (counts) incarnation.touchedMs = Math.max(incarnation.touchedMs, nowMs);
    if (noted !== undefined) this.#parts.background(process, this.#answered(process, incarnation, noted, counts));
    incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, nowMs);
  }

  /** A read counts from its answer, too. */
  async #answered(process: RunningProcess, incarnation: Incarnation, noted: Promise<void>, counts: boolean): Promise<void> {
    incarnation.readsUnderWay += 1;
    await noted;
    if (!process.isAlive) return;
    incarnation.readsUnderWay -= 1;
    const nowMs = process.clock.nowMs();
    incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, nowMs);
    if (counts && !this.#parts.ledger.sawFull) incarnation.answeredMs = Math.max(incarnation.answeredMs, nowMs);
  }

  async #locate(process: RunningProcess, incarnation: Incarnation, stream: Stream): Promise<void> {
    const known = [...incarnation.tokens].filter(([position]) => position <= stream.tail);
    if (known.length === 0) return;
    const [position, token] = this.#parts.random.pick(known);
    const offset = parseOffset(token);
    must(offset !== null, () => `${token} is not a token`);
    const located = await this.#unlessGone(process, incarnation, stream, stream.locate(offset), position);
    if (located === null) return;
    const isGone = position < stream.stored.earliest && typeof located === "object" && located.code === "offset-gone";
    must(located === position || isGone, () => `${incarnation.tag}: ${token} means ${JSON.stringify(located)}, not ${position}`);
  }

  async #readFrom(process: RunningProcess, incarnation: Incarnation, stream: Stream, from: ReadFrom): Promise<void> {
    const { earliest } = incarnation;
    const memory = new LentMemory();
    const chunk = await this.#unlessGone(
      process,
      incarnation,
      stream,
      readOf(stream, from, this.#parts.random.pick([1, 100, 1000, 100_000]), this.#parts.whims.chance(0.3) ? memory.lend : undefined),
      from,
    );
    if (chunk === null) return;
    must(from === "start" ? chunk.from >= earliest : chunk.from === from, () => `${incarnation.tag}: asked for ${from}, got ${chunk.from}`);
    observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
    incarnation.observe(chunk.from, chunk.bytes);
    memory.spoil();
    incarnation.observeToken(chunk.to, stream.offsetAt(chunk.to));
    if (chunk.closed) incarnation.observeClosed(chunk.to);
    if (chunk.to < stream.tail && !stream.isJson) await this.#checkEnd(process, incarnation, stream, chunk.to);
  }

  /** A read of bytes ended where an append did: the next one's mark follows, or as much of it as comes before a fork's point. */
  async #checkEnd(process: RunningProcess, incarnation: Incarnation, stream: Stream, end: number): Promise<void> {
    const { owner, limit } = incarnation.ownerAt(end - 1);
    const { hasFailedIndex, names } = this.#parts.ledger;
    if (owner === null || end === limit || hasFailedIndex || names.some(({ hasLostIndex }) => hasLostIndex)) return;
    const next = await this.#unlessGone(process, incarnation, stream, readOf(stream, end, 1), end);
    const markLength = Math.min(9, limit - end);
    must(
      next === null || /^#\d*$/.test(next.bytes.toString("latin1", 0, markLength)),
      () => `${incarnation.tag}: a read ended at ${end}, within an append`,
    );
  }

  /** What `work` gives, or `null` where the process or the stream is gone meanwhile. */
  async #unlessGone<T>(
    process: RunningProcess,
    incarnation: Incarnation,
    stream: Stream,
    work: T | Promise<T>,
    from: ReadFrom,
  ): Promise<T | null> {
    try {
      const value = await work;
      return process.isAlive ? value : null;
    } catch (error) {
      // Who asks for the beginning gets it, wherever it is by then.
      const isTrimmed = error instanceof TrimmedStreamError && from !== "start" && from < stream.stored.earliest;
      const isBug = error instanceof RangeError || error instanceof TypeError;
      if (!process.isAlive || isTrimmed || (!isBug && this.#parts.ledger.mayBeGone(process, incarnation))) return null;
      throw error;
    }
  }

  /** A live reader: from the tail on it is told of everything, without a gap. */
  async follow(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#parts.find(process, name);
    if (stream === null) return;
    const incarnation = this.#parts.ledger.incarnationOf(name, stream);
    let at = stream.tail;
    const onAdvance = (advance: {
      readonly from: number;
      readonly to: number;
      readonly closed: boolean;
      readonly ends: readonly number[];
    }): void => {
      if (!process.isAlive) return;
      this.#noting(() => {
        must(advance.from === at, () => `${incarnation.tag}: a live reader at ${at} was told of ${advance.from}`);
        must(
          advance.to === stream.tail || advance.to < stream.tail,
          () => `${incarnation.tag}: a live reader was told of ${advance.to}, past the tail`,
        );
        at = advance.to;
        observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
        for (const end of advance.ends) incarnation.observeToken(end, stream.offsetAt(end));
        if (advance.closed) incarnation.observeClosed(advance.to);
      });
      if (advance.from <= incarnation.seenTo) this.#parts.background(process, this.#readFrom(process, incarnation, stream, advance.from));
    };
    const leave = stream.follow(onAdvance, () => undefined);
    for (let turns = this.#parts.random.integer(1, 200); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    leave();
  }

  #noting(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#parts.broken(error);
    }
  }
}

const SPOILT = 0x5a;

/** Memory that a reader lends for a read, and uses for something else after it. */
class LentMemory {
  readonly #lent: Buffer[] = [];
  readonly lend: Allocate = (bytes) => {
    const memory = Buffer.allocUnsafeSlow(bytes);
    this.#lent.push(memory);
    return memory;
  };

  spoil(): void {
    for (const memory of this.#lent) memory.fill(SPOILT);
  }
}

/** A read that fails at once fails like one that fails later. */
async function readOf(stream: Stream, from: ReadFrom, maxBytes: number, allocate?: Allocate): Promise<Chunk> {
  return stream.read(from, maxBytes, { allocate });
}
