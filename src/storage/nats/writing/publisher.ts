import type { ClusterFigures, StorageObserver } from "../../figures.js";
import type { AppendRecord, Position, Rejection, Settlement } from "../../storage.js";
import { LogUnavailableError, type Published } from "../log/replicated-log.js";
import { newStreamId } from "../../stream-id.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import type { ClusterParts, StateReader } from "../reading/state-reader.js";
import { whenLed } from "../reading/when-led.js";
import { countFitting, draftOf, MAX_RECORDS, type Draft } from "./batch.js";
import { publishAgain, type Attempt, type Outcome, type PublishingOptions } from "./publishing.js";
import { ReadNotes } from "./read-notes.js";
import { RESERVED_MESSAGES, type Reserve } from "./reserve.js";

type Settle = (how: Settlement) => void;

/** Something that waits for its turn in a stream. */
type Entry =
  /** `prepare` has to be done before the stream's first message; where it can't be, that fails as it says. */
  | {
      readonly kind: "append";
      readonly record: AppendRecord;
      readonly settle: Settle;
      readonly prepare: (() => Promise<Settlement | null>) | null;
    }
  | { readonly kind: "barrier"; readonly settle: Settle; readonly expectedTail: Position | null }
  | { readonly kind: "trim"; readonly find: () => Promise<Beginning | null>; readonly settle: Settle }
  | { readonly kind: "delete"; readonly settle: Settle };

/** Where a stream is to begin, and when the newest append in its first message was made then. */
export interface Beginning {
  readonly position: Position;
  readonly atMs: number;
}

/** What waits in one stream; there is one while something does. */
interface Queue {
  entries: Entry[];
  /** What is in the message that is on its way. */
  sent: readonly Entry[];
  reservedTail: Position;
  /** The message after which everything that waits was decided: when others come first, it is to be decided again. */
  basis: number;
  isRunning: boolean;
  /** How often in a row another front end was first. */
  lostRounds: number;
}

/** What the publisher works with. */
export interface PublisherOptions extends Pick<PublishingOptions, "stopwatchMs" | "timeoutMs" | "random"> {
  readonly parts: ClusterParts;
  readonly states: StateReader;
  readonly reserve: Reserve;
  /** Payload that may wait in all streams, in bytes. */
  readonly maxQueuedBytes: number;
  /** Is told what must not happen, like a message that is not of this version. */
  readonly onFault: (fault: unknown) => void;
  /** Is told of a stream that another front end was first to change. */
  readonly onLost: (stream: ClusterStream) => void;
  /** Is told of each message that is stored; `null` for nobody. */
  readonly observer: StorageObserver | null;
}

/** Two front ends win in turn, mostly; where there are more, some have to wait. */
const LOSSES_WITHOUT_PAUSE = 8;
/** A pause of up to this for each round lost leaves others a turn. */
const PAUSE_AFTER_LOSS_MS = 2;
const MAX_PAUSE_AFTER_LOSS_MS = 100;

/** Others may take the room that was made, or hold it again. */
const MAX_TRIES_TO_MAKE_ROOM = 2 * RESERVED_MESSAGES;

/** Publishes what front ends change: in each stream one message at a time, with all that waited meanwhile. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #publishing: PublishingOptions;
  readonly #notes: ReadNotes;
  readonly #queues = new Map<ClusterStream, Queue>();
  readonly #frontEnd = newStreamId();
  #publications = 0;
  #queuedBytes = 0;
  #appendedBytes = 0;
  readonly #outcomes = { stored: 0, moved: 0, full: 0, untaken: 0, unknown: 0 };
  #decidedAgain = 0;

  constructor(options: PublisherOptions) {
    const { parts, stopwatchMs, timeoutMs, random, onFault } = options;
    this.#options = options;
    this.#publishing = { log: parts.log, clock: parts.clock, stopwatchMs, timeoutMs, random };
    this.#notes = new ReadNotes(parts, this.#publishing, onFault);
  }

  /** Payload that waits for the log. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Payload that became durable. */
  get appendedBytes(): number {
    return this.#appendedBytes;
  }

  /** What became of messages. */
  get figures(): ClusterFigures {
    return { outcomes: { ...this.#outcomes }, decidedAgain: this.#decidedAgain };
  }

  /** Whether nothing of the stream waits. */
  isIdle(stream: ClusterStream): boolean {
    return !this.#queues.has(stream) && this.#notes.isIdle(stream);
  }

  /** The tail when everything that waits is durable. */
  #reservedTail(stream: ClusterStream): Position {
    const queue = this.#queues.get(stream);
    if (queue === undefined) return stream.state.tail;
    // Another's message may have come since: only what was decided before that has to be decided again.
    const isBehind = queue.basis !== stream.sequence;
    if (isBehind && !queue.sent.some(isDecided) && !queue.entries.some(isDecided)) restOn(stream, queue);
    return queue.reservedTail;
  }

  /** Appends if the tail, after all that waits, is `expectedTail`. `prepare` goes before a fork's first message. */
  append(
    stream: ClusterStream,
    record: AppendRecord,
    expectedTail: Position,
    settle: Settle,
    prepare: (() => Promise<Settlement | null>) | null = null,
  ): Rejection | null {
    if (this.#reservedTail(stream) !== expectedTail) return "tail-moved";
    const { length } = record.payload;
    if (length > this.#options.parts.log.maxBodyBytes) return "body-too-large";
    if (this.#queuedBytes + length > this.#options.maxQueuedBytes && this.#queuedBytes > 0) return "overloaded";
    this.#queuedBytes += length;
    this.#put(stream, { kind: "append", record, settle, prepare });
    return null;
  }

  /**
   * Settles when every change before it has; `tail-moved` where the tail is not `expectedTail` then. Directly behind
   * the note of a read it waits for that as well, and fails as that does.
   */
  barrier(stream: ClusterStream, settle: Settle, expectedTail: Position | null): void {
    const isOfNote = this.#notes.ask(stream, (noted) =>
      this.#changed(stream, (how) => settle(noted === "durable" ? how : noted), expectedTail),
    );
    if (!isOfNote) this.#changed(stream, settle, expectedTail);
  }

  #changed(stream: ClusterStream, settle: Settle, expectedTail: Position | null): void {
    if (!this.#queues.has(stream)) return settle(barrierOf(stream, expectedTail));
    this.#put(stream, { kind: "barrier", settle, expectedTail });
  }

  /** Notes a read; whoever does asks with the next barrier what became of that. */
  touch(stream: ClusterStream, atMs: number): void {
    this.#notes.note(stream, atMs);
  }

  /** Stores where the stream is to begin, once `find` has found that; nothing where it finds nothing. */
  trim(stream: ClusterStream, find: () => Promise<Beginning | null>, settle: Settle): void {
    this.#put(stream, { kind: "trim", find, settle });
  }

  /** Stores the stream's tombstone, behind all that waits. */
  delete(stream: ClusterStream, settle: Settle): void {
    this.#put(stream, { kind: "delete", settle });
  }

  #put(stream: ClusterStream, entry: Entry): void {
    const queue = this.#queues.get(stream) ?? queueOf(stream);
    this.#queues.set(stream, queue);
    queue.entries.push(entry);
    if (entry.kind === "append") queue.reservedTail += entry.record.payload.length;
    if (!queue.isRunning) void this.#run(stream, queue);
  }

  /** Takes one message after the other out of a queue, until it is empty. */
  async #run(stream: ClusterStream, queue: Queue): Promise<void> {
    queue.isRunning = true;
    try {
      while (queue.entries.length > 0) await this.#step(stream, queue);
    } catch (fault) {
      // A state could not be read: nothing was sent.
      if (!(fault instanceof LogUnavailableError)) this.#options.onFault(fault);
      this.#failAll(stream, queue, [], "overloaded");
    }
    queue.isRunning = false;
    if (queue.entries.length > 0) void this.#run(stream, queue);
    else this.#retire(stream, queue);
  }

  /** Forgets a queue in which nothing waits. */
  #retire(stream: ClusterStream, queue: Queue): void {
    if (queue.entries.length === 0 && this.#queues.get(stream) === queue) this.#queues.delete(stream);
  }

  async #step(stream: ClusterStream, queue: Queue): Promise<void> {
    const first = queue.entries[0];
    if (first?.kind === "barrier") {
      queue.entries.shift();
      this.#retire(stream, queue);
      return first.settle(barrierOf(stream, first.expectedTail));
    }
    const { log } = this.#options.parts;
    if (stream.isStale) await this.#refresh(stream);
    if (stream.standing !== "live" || stream.sequence !== queue.basis)
      return this.#failAll(stream, queue, [], "tail-moved");
    const prepare = first?.kind === "append" ? first.prepare : null;
    const refused = prepare === null ? null : await whenLed(log, prepare);
    if (refused !== null) return this.#failAll(stream, queue, [], refused);
    const { sequence } = stream;
    const beginning = first?.kind === "trim" ? await whenLed(log, first.find) : null;
    // What was found is of a state that may be over: the stream may begin further on.
    if (first?.kind === "trim" && (beginning === null || stream.sequence !== sequence)) {
      queue.entries.shift();
      return first.settle("overloaded");
    }
    if (stream.sequence !== queue.basis) return this.#failAll(stream, queue, [], "tail-moved");
    // What came meanwhile goes along.
    const taken = takeBatch(queue, log.maxBodyBytes);
    const makesRoom = first?.kind === "delete" || first?.kind === "trim";
    queue.sent = taken;
    const outcome = await this.#outcomeOf(stream, this.#draft(stream, taken, beginning), makesRoom);
    queue.sent = [];
    this.#outcomes[outcome.kind] += 1;
    const moved = this.#settle(stream, queue, taken, outcome);
    if (moved !== null) await moved;
  }

  #refresh(stream: ClusterStream): Promise<void> {
    const { parts, states } = this.#options;
    return whenLed(parts.log, () => states.refresh(stream));
  }

  #draft(stream: ClusterStream, taken: readonly Entry[], earliest: Beginning | null): Draft {
    this.#publications += 1;
    const publication = `${this.#frontEnd}.${this.#publications}`;
    const { maxBodyBytes } = this.#options.parts.log;
    const [first] = taken;
    const records: AppendRecord[] = [];
    for (const entry of taken) if (entry.kind === "append") records.push(entry.record);
    const deletedAtMs = first?.kind === "delete" ? this.#options.parts.clock.nowMs() : null;
    return draftOf(stream, records, { publication, maxBodyBytes, deletedAtMs, earliest });
  }

  /** What `makesRoom` is stored in a full shard, too: from its reserve. */
  async #outcomeOf(stream: ClusterStream, draft: Draft, makesRoom: boolean): Promise<Outcome> {
    const { parts, states, observer, stopwatchMs } = this.#options;
    const subject = (stream.subject ??= parts.subjects.ofStream(stream.name));
    const previous = stream.sequence;
    const sentAtMs = stopwatchMs();
    const attempt: Attempt = { subject, draft, expected: previous, sentAtMs };
    try {
      const first = await parts.log.publish(subject, draft.head, draft.body, previous);
      const outcome =
        first.kind === "stored" ? first : await this.#outcomeAfter(first, attempt, makesRoom ? stream.name : null);
      if (outcome.kind === "stored") {
        const { change, body } = draft;
        observer?.messageStored(stopwatchMs() - sentAtMs, change.records.length, body.length);
        const taken = states.take(stream, { change, sequence: outcome.sequence, previous, body });
        if (taken !== undefined) await taken;
      }
      return outcome;
    } catch (fault) {
      if (!(fault instanceof LogUnavailableError)) this.#options.onFault(fault);
      return { kind: "unknown" };
    }
  }

  /** Where there is no room, that which is held for `roomOf`, a stream, is used; `null` for a message that may not. */
  async #outcomeAfter(first: Published, attempt: Attempt, roomOf: string | null): Promise<Outcome> {
    const { parts, reserve, stopwatchMs } = this.#options;
    const { subject, draft, expected } = attempt;
    let outcome = await publishAgain(this.#publishing, attempt, first);
    for (let tries = 0; outcome.kind === "full" && roomOf !== null && tries < MAX_TRIES_TO_MAKE_ROOM; tries += 1) {
      if (!(await reserve.makeRoomFor(roomOf))) break;
      const again = { ...attempt, sentAtMs: stopwatchMs() };
      const published = await parts.log.publish(subject, draft.head, draft.body, expected);
      outcome = await publishAgain(this.#publishing, again, published);
    }
    return outcome;
  }

  /** Settles what was published; a promise where it goes on waiting, to be decided again. */
  #settle(stream: ClusterStream, queue: Queue, taken: readonly Entry[], outcome: Outcome): Promise<void> | null {
    if (outcome.kind === "stored") {
      queue.lostRounds = 0;
      // News of a later message may have come before the answer.
      queue.basis = Math.max(queue.basis, outcome.sequence);
      this.#retire(stream, queue);
      for (const entry of taken) this.#settleEntry(entry, "durable");
      return null;
    }
    if (outcome.kind === "moved") return this.#moved(stream, queue, taken);
    if (outcome.kind === "unknown") this.#failUnknown(stream, queue, taken);
    else this.#failAll(stream, queue, taken, outcome.kind === "full" ? "storage-full" : "overloaded");
    return null;
  }

  #failUnknown(stream: ClusterStream, queue: Queue, taken: readonly Entry[]): void {
    stream.isStale = true;
    // What was never sent has no effect.
    const waiting = queue.entries;
    beginAnew(stream, queue);
    for (const entry of taken) this.#settleEntry(entry, "unknown");
    for (const entry of waiting) this.#settleEntry(entry, "overloaded");
  }

  /** Another message came first: everything is decided again, on what is there now. */
  async #moved(stream: ClusterStream, queue: Queue, taken: readonly Entry[]): Promise<void> {
    if (!stream.created) return this.#creationMoved(stream, queue, taken);
    queue.lostRounds += 1;
    this.#decidedAgain += taken.length + queue.entries.length;
    // Nothing of what was taken is there: it goes on waiting where the state can't be read.
    queue.entries.unshift(...taken);
    this.#options.onLost(stream);
    // A hint may have brought it already.
    if (stream.sequence === queue.basis) await this.#refresh(stream);
    this.#failAll(stream, queue, [], "tail-moved");
    const { parts, random } = this.#options;
    const lost = queue.lostRounds - LOSSES_WITHOUT_PAUSE;
    if (lost <= 0) return;
    const pauseMs = Math.min(lost * PAUSE_AFTER_LOSS_MS, MAX_PAUSE_AFTER_LOSS_MS) * random();
    await new Promise<void>((resolve) => void parts.clock.after(pauseMs, resolve));
  }

  /** The name was not as a creation expected it: it goes behind a tombstone, and gives way to a living stream. */
  async #creationMoved(stream: ClusterStream, queue: Queue, taken: readonly Entry[]): Promise<void> {
    queue.entries.unshift(...taken);
    const { parts, states } = this.#options;
    const tombstone = await whenLed(parts.log, () => states.tombstoneOf(stream.name));
    if (tombstone === null || tombstone === stream.sequence) return this.#failAll(stream, queue, [], "exists");
    stream.sequence = queue.basis = tombstone;
  }

  /** Settles what was taken, and all that waits behind it, in order; what that submits anew goes on from the state. */
  #failAll(stream: ClusterStream, queue: Queue, taken: readonly Entry[], how: Settlement): void {
    const all = [...taken, ...queue.entries];
    beginAnew(stream, queue);
    for (const entry of all) this.#settleEntry(entry, how);
  }

  #settleEntry(entry: Entry, how: Settlement): void {
    if (entry.kind === "append") {
      const { length } = entry.record.payload;
      this.#queuedBytes -= length;
      if (how === "durable") this.#appendedBytes += length;
    }
    entry.settle(how);
  }
}

function queueOf(stream: ClusterStream): Queue {
  const { sequence, state } = stream;
  return { entries: [], sent: [], reservedTail: state.tail, basis: sequence, isRunning: false, lostRounds: 0 };
}

/** Whether an entry rests on the state for which it was submitted. */
function isDecided({ kind }: Entry): boolean {
  return kind === "append" || kind === "delete";
}

/** What comes next in a queue is decided on the state that is known now. */
function restOn({ sequence, state }: ClusterStream, queue: Queue): void {
  queue.reservedTail = state.tail;
  queue.basis = sequence;
}

function beginAnew(stream: ClusterStream, queue: Queue): void {
  queue.entries = [];
  restOn(stream, queue);
}

/** Takes off what goes into one message: appends as far as they fit, or one other change. */
function takeBatch(queue: Queue, maxBodyBytes: number): readonly Entry[] {
  const { entries } = queue;
  if (entries.length === 1) {
    queue.entries = [];
    return entries;
  }
  const records: AppendRecord[] = [];
  for (const entry of entries) {
    if (entry.kind !== "append" || records.length === MAX_RECORDS) break;
    records.push(entry.record);
  }
  return entries.splice(0, records.length === 0 ? 1 : countFitting(records, maxBodyBytes));
}

function barrierOf(stream: ClusterStream, expectedTail: Position | null): Settlement {
  const isMoved = expectedTail !== null && stream.state.tail !== expectedTail;
  return isMoved ? "tail-moved" : "durable";
}
