import type { ProducerStamp } from "../../src/storage/storage.js";
import { DeletedStreamError, TrimmedStreamError, type Chunk, type Stream } from "../../src/stream/loaded/stream.js";
import { observeBeginning } from "./beginnings.js";
import type { Ledger } from "./ledger.js";
import { must, type Incarnation } from "./model.js";
import type { Operation } from "./operations.js";
import type { RunningProcess } from "./running-process.js";

/**
 * Reads a stream from its beginning to its end while nothing else goes on, `maxBytes` at a time, and compares it with what clients know.
 */
export async function checkStream(
  process: RunningProcess,
  ledger: Ledger,
  incarnation: Incarnation,
  stream: Stream,
  maxBytes: number,
): Promise<void> {
  stream.retain();
  try {
    const content = await readWhole(process, ledger, incarnation, stream, maxBytes);
    if (content === null) return;
    incarnation.checkWhole(content, (id) => ledger.operation(id));
    if (incarnation.earliest > incarnation.point) adoptDropped(ledger, incarnation, stream);
    checkState(incarnation, stream);
  } catch (error) {
    // It was deleted, or expired, in the middle: whether it may have been is what other answers tell.
    if (!(error instanceof DeletedStreamError)) throw error;
  } finally {
    stream.release();
  }
}

/** The content, or `null` where the process or the stream is gone meanwhile. */
async function readWhole(
  process: RunningProcess,
  ledger: Ledger,
  incarnation: Incarnation,
  stream: Stream,
  maxBytes: number,
): Promise<Buffer | null> {
  const { tail } = stream;
  const { earliest } = stream.stored;
  const pieces: Buffer[] = [];
  observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
  for (let at = earliest; at < tail;) {
    const chunk = await readUnlessTrimmed(stream, at, maxBytes);
    if (chunk === null || !process.isAlive || ledger.mayBeGone(process, incarnation)) return null;
    must(chunk.from === at && chunk.to > at, () => `${incarnation.tag}: a read from ${at} gave ${chunk.from}..${chunk.to}`);
    observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
    incarnation.observeToken(chunk.to, stream.offsetAt(chunk.to));
    pieces.push(Buffer.from(chunk.bytes));
    at = chunk.to;
  }
  must(stream.tail === tail, () => `${incarnation.tag}: the tail moved by itself`);
  if (stream.stored.earliest > earliest) return null;
  return Buffer.concat(pieces);
}

/** What is there, or `null` where it was dropped meanwhile. */
async function readUnlessTrimmed(stream: Stream, at: number, maxBytes: number): Promise<Chunk | null> {
  try {
    return await stream.read(at, maxBytes);
  } catch (error) {
    if (error instanceof TrimmedStreamError && at < stream.stored.earliest) return null;
    throw error;
  }
}

/**
 * An append may have been taken, cut off from its answer, and dropped by retention before anybody read it: only what the
 * stream says of itself tells of it.
 */
function adoptDropped(ledger: Ledger, incarnation: Incarnation, { stored: { state } }: Stream): void {
  for (const operation of ledger.possible(incarnation)) {
    const { producer, seq } = operation;
    if (seq !== null && seq === state.lastSeq && (incarnation.lastSeq === null || seq > incarnation.lastSeq)) incarnation.lastSeq = seq;
    const mark = producer === null ? undefined : state.producers?.get(producer.id);
    if (mark?.epoch !== producer?.epoch || mark?.seq !== producer?.seq || incarnation.operations.includes(operation)) continue;
    operation.inside = incarnation;
    incarnation.operations.push(operation);
  }
}

function checkState(incarnation: Incarnation, stream: Stream): void {
  const { state } = stream.stored;
  const { tag } = incarnation;
  must(incarnation.closedAt === null || stream.closed, () => `${tag} is no longer closed`);
  incarnation.cited.check(tag, state);
  if (stream.closed) incarnation.observeClosed(stream.tail);
  must(state.lastSeq === incarnation.lastSeq, () => `${tag}: Stream-Seq is ${state.lastSeq}, the last append had ${incarnation.lastSeq}`);
  const last = new Map<string, Operation>();
  for (const operation of incarnation.operations) {
    const known = operation.producer === null ? undefined : last.get(operation.producer.id);
    if (operation.producer !== null && (known?.producer == null || isLater(operation.producer, known.producer)))
      last.set(operation.producer.id, operation);
  }
  for (const [id, { producer }] of last) {
    const mark = state.producers?.get(id);
    must(
      mark?.epoch === producer?.epoch && mark?.seq === producer?.seq,
      () => `${tag}: producer ${id} is at ${JSON.stringify(mark)}, its last append was ${JSON.stringify(producer)}`,
    );
  }
  must((state.producers?.size ?? 0) === last.size, () => `${tag}: there are ${state.producers?.size} producers, not ${last.size}`);
}

function isLater(stamp: ProducerStamp, other: ProducerStamp): boolean {
  return stamp.epoch > other.epoch || (stamp.epoch === other.epoch && stamp.seq > other.seq);
}
