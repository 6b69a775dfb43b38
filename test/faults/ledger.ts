import { DamagedStreamError, StorageBusyError } from "../../src/storage/storage.js";
import type { TtlMode } from "../../src/stream/rules/expiry.js";
import {
  TOO_MANY_PRODUCERS,
  TOO_MANY_STREAMS,
  type Appended,
  type CreateOutcome,
  type DeleteOutcome,
  type Refused,
} from "../../src/stream/rules/outcome.js";
import type { Stream } from "../../src/stream/loaded/stream.js";
import { observeBeginning } from "./beginnings.js";
import { Incarnation, must, Violation, type IncarnationConfig, type Origin } from "./model.js";
import { Holders } from "./holders.js";
import { Identities } from "./identities.js";
import type { Name } from "./names.js";
import { checkPoint, placeOf, positionOf } from "./places.js";
import { payloadOf, type Operation, type Producer, type Try } from "./operations.js";
import type { RunningProcess } from "./running-process.js";

const NO_BYTES = Buffer.alloc(0);

/** A deletion that was asked for: `targets` are the streams that it may have met until now. */
interface OpenDeletion {
  readonly since: number;
  readonly name: Name;
  readonly targets: Incarnation[];
}

/** Whether a stream is refused as memory has no room for it. That says nothing of it, and takes no fault. */
export function isForLackOfMemory({ detail }: Refused): boolean {
  return detail === TOO_MANY_PRODUCERS.detail || detail === TOO_MANY_STREAMS.detail;
}

/** What clients asked for, what they were told, and what must therefore be true. */
export class Ledger {
  acknowledged = 0;
  /** Whether the disk was made to fail in this life of the server, so that failures are to be expected. */
  faultInjected = false;
  /** Whether it was full in this life. */
  sawFull = false;
  /** Whether it could open no more files at some time of this life: then the journal may have had no room either. */
  lackedFiles = false;
  /** Whether the disk failed to read an index, or to write one: reads may end within an append from then on. */
  hasFailedIndex = false;
  readonly names: readonly Name[];
  readonly #ttlMode: TtlMode;
  readonly holders: Holders;
  readonly #operations = new Map<number, Operation>();
  readonly #identities = new Identities();
  /** Deletions on their way, by when they were asked for: each may delete what is made under its name meanwhile, too. */
  readonly #openDeletes = new Map<number, OpenDeletion>();
  /** Appends on their way, by name: any of them may touch a stream at any moment. */
  readonly #underWay = new Map<Name, number>();
  #tick = 0;

  constructor(names: readonly Name[], ttlMode: TtlMode) {
    this.names = names;
    this.holders = new Holders(names);
    this.#ttlMode = ttlMode;
  }

  /** The next moment in the order of things. */
  tick(): number {
    this.#tick += 1;
    return this.#tick;
  }

  operation(id: number): Operation | undefined {
    return this.#operations.get(id);
  }

  /** What of all that was ever sent may be in the stream, as far as its answers tell. */
  *possible(incarnation: Incarnation): Generator<Operation> {
    for (const operation of this.#operations.values()) {
      const isTheirs = operation.inside === incarnation || (operation.inside === null && operation.name === incarnation.name);
      if (isTheirs && (operation.maybe || operation.acked) && !operation.refused) yield operation;
    }
  }

  newOperation(
    name: Name,
    more: Partial<Pick<Operation, "closes" | "producer">> & { readonly length: number | null; readonly seq?: string | "own" | null },
  ): Operation {
    const id = this.#operations.size + 1;
    const { closes = false, producer = null, length } = more;
    const seq = more.seq === "own" ? String(id).padStart(8, "0") : (more.seq ?? null);
    const { body, stored } = length === null ? { body: NO_BYTES, stored: NO_BYTES } : payloadOf(id, name.kind, length);
    const operation: Operation = {
      id,
      name: name.name,
      body,
      stored,
      closes,
      producer,
      seq,
      invokedAt: this.tick(),
      sentMs: 0,
      endedAt: Infinity,
      inFlight: 0,
      tries: 0,
      takenBy: new Set(),
      inside: null,
      acked: false,
      from: null,
      refused: false,
      maybe: false,
    };
    this.#operations.set(id, operation);
    return operation;
  }

  /** The streams that may be there. */
  alive(name: Name): Incarnation[] {
    return name.incarnations.filter((incarnation) => !incarnation.dead);
  }

  incarnationOf(name: Name, stream: Stream): Incarnation {
    const incarnation = name.incarnations.find(({ tag }) => tag === stream.config.contentType);
    if (incarnation === undefined) throw new Violation(`${name.name} is ${stream.config.contentType}, which nobody created`);
    return incarnation;
  }

  mayBeGone(process: RunningProcess, incarnation: Incarnation): boolean {
    return incarnation.dead || incarnation.openDeletes.size > 0 || process.clock.nowMs() >= incarnation.earliestDeadlineMs;
  }

  /** Whether a failure is one that may be: of a disk that was made to fail, or of a stream whose files were spoilt. */
  expects(error: unknown): boolean {
    if (error instanceof Violation) return false;
    // What the journal has of a stream may need room in its files before it can be read.
    if (error instanceof StorageBusyError) return this.sawFull || this.faultInjected;
    if (!(error instanceof DamagedStreamError)) return this.faultInjected;
    if (this.holders.deletedDamaged && error.problem.includes("its source")) return true;
    // A file that the disk fails to read is damaged for as long.
    if (this.faultInjected && error.problem.includes("EIO")) return true;
    return this.names.some(({ name, isDamaged }) => isDamaged && name === error.stream);
  }

  /** A new process: the disk does not fail, and has room. */
  started(): void {
    this.faultInjected = false;
    this.sawFull = false;
    this.lackedFiles = false;
  }

  /** The process is gone: what was under way is neither done nor not done. */
  crashed(nowMs: number): void {
    const tick = this.tick();
    this.#openDeletes.clear();
    this.#underWay.clear();
    for (const operation of this.#operations.values()) {
      if (operation.inFlight === 0) continue;
      operation.inFlight = 0;
      operation.maybe = true;
      operation.endedAt = tick;
    }
    for (const incarnation of this.#all()) incarnation.crashed(tick, nowMs);
  }

  /** The process ended by itself. */
  closedCleanly(): void {
    for (const incarnation of this.#all()) incarnation.closedCleanly(!this.sawFull && !this.lackedFiles);
  }

  creationSent(
    name: Name,
    initial: Operation,
    config: Omit<IncarnationConfig, "ttlMode">,
    nowMs: number,
    origin: Origin | null,
  ): Incarnation {
    const incarnation = new Incarnation(initial, { ...config, ttlMode: this.#ttlMode }, nowMs, this.alive(name), origin);
    name.incarnations.push(incarnation);
    for (const deletion of this.#openDeletes.values()) if (deletion.name === name) this.#mayDelete(deletion, incarnation);
    initial.inside = incarnation;
    initial.sentMs = nowMs;
    initial.inFlight = 1;
    return incarnation;
  }

  /** The source of a fork went while it was looked at. */
  creationCutShort(incarnation: Incarnation): void {
    must(incarnation.origin !== null, () => `${incarnation.tag} is no fork, and was told that its source is gone`);
    incarnation.initial.inFlight = 0;
    incarnation.initial.endedAt = incarnation.endedAt = this.tick();
    this.#neverWas(incarnation);
  }

  creationAnswered(process: RunningProcess, name: Name, incarnation: Incarnation, outcome: CreateOutcome): void {
    const nowMs = process.clock.nowMs();
    const { tag, initial } = incarnation;
    initial.inFlight = 0;
    initial.endedAt = incarnation.endedAt = this.tick();
    incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, nowMs);
    if (outcome.kind === "refused") return this.#creationRefused(process, name, incarnation, outcome);
    if (!outcome.created) {
      this.#neverWas(incarnation);
      const other = name.incarnations.find(({ tag: otherTag }) => otherTag === outcome.contentType);
      must(
        other !== undefined && (!other.dead || incarnation.rivals.includes(other)),
        () => `${tag}: found ${outcome.contentType}, which is gone`,
      );
      other.seen(this.#tick);
      return other.cited.ends(outcome.nextOffset, outcome.closed);
    }
    for (const other of this.alive(name)) {
      if (other === incarnation) continue;
      must(!other.wasThereSince(incarnation.invokedAt, nowMs), () => `${tag} was created while ${other.tag} was there`);
      if (other.endedAt < incarnation.invokedAt) other.dead = true;
    }
    const isHeld = this.holders.mustHold(name.name, incarnation.invokedAt, nowMs);
    must(!isHeld, () => `${tag} was created while forks held the name`);
    incarnation.acked = true;
    incarnation.answeredMs = nowMs;
    incarnation.operations.push(initial);
    if (incarnation.origin !== null)
      checkPoint(incarnation, incarnation.origin, positionOf(outcome.nextOffset) - initial.stored.length, nowMs);
    this.#acknowledge(initial, incarnation, outcome.nextOffset);
    must(outcome.closed === initial.closes, () => `${tag}: created closed=${outcome.closed}`);
  }

  #creationRefused(process: RunningProcess, name: Name, incarnation: Incarnation, refused: Refused): void {
    const { code } = refused;
    if (code === "storage-unavailable") {
      must(process.fault !== null, () => "creation refused without a fault");
      incarnation.initial.maybe = true;
      return;
    }
    this.#neverWas(incarnation);
    if (code === "config-mismatch") {
      const [other, ...more] = name.incarnations.filter(
        (known) => known !== incarnation && !known.initial.refused && known.releasedAt >= incarnation.invokedAt,
      );
      must(other !== undefined, () => `${incarnation.tag}: compared with a stream that is gone`);
      return more.length === 0 ? other.seen(this.#tick) : undefined;
    }
    if (code === "storage-full") return must(this.sawFull, () => "creation refused as full");
    if (code === "name-held-by-forks") return this.#assertHeld(process, name, incarnation.invokedAt);
    if (incarnation.origin !== null && code !== "overloaded") return this.#forkRefused(process, incarnation, incarnation.origin, refused);
    must(code === "overloaded", () => `${incarnation.tag}: refused as ${code}`);
  }

  /** It is about the source. */
  #forkRefused(process: RunningProcess, { tag, invokedAt }: Incarnation, origin: Origin, { code, earliestOffset }: Refused): void {
    const source = this.names.find(({ name }) => name === origin.name);
    if (source === undefined) throw new Violation(`${tag} has no source`);
    if (code === "fork-source-gone") return this.#assertHeld(process, source, invokedAt);
    if (code === "stream-not-found") return this.#assertNotThere(process, source, invokedAt);
    const isOther = !origin.expected.wasThereSince(invokedAt, process.clock.nowMs());
    const isBefore =
      code === "offset-gone" && earliestOffset !== undefined && origin.from !== null && origin.from < positionOf(earliestOffset);
    const isBehind = code === "invalid-fork" && origin.subOffset > 0;
    must(isOther || isBefore || isBehind, () => `${tag}: refused as ${code}, forked from ${origin.expected.tag}`);
  }

  /** Nobody has the name, but a fork may hold it. */
  #assertHeld(process: RunningProcess, name: Name, since: number): void {
    for (const incarnation of this.alive(name))
      must(!incarnation.wasThereSince(since, process.clock.nowMs()), () => `${incarnation.tag} is said to be held by forks only`);
    must(this.holders.mayHold(name.name, since), () => `${name.name} is said to be held by forks, and has none`);
  }

  #neverWas(incarnation: Incarnation): void {
    incarnation.dead = true;
    incarnation.releasedAt = this.#tick;
    incarnation.initial.refused = true;
  }

  sent(process: RunningProcess, name: Name, operation: Operation, producer: Producer | null): Try {
    const sentMs = process.clock.nowMs();
    const isRetry = operation.tries > 0;
    if (operation.tries === 0) operation.sentMs = sentMs;
    operation.tries += 1;
    operation.inFlight += 1;
    operation.refused = false;
    operation.endedAt = Infinity;
    this.#underWay.set(name, (this.#underWay.get(name) ?? 0) + 1);
    const isNext = producer !== null && !producer.unacked.some(({ id }) => id < operation.id);
    return { since: this.tick(), sentMs, isRetry, before: this.alive(name), producer, isNext };
  }

  /** A try has its answer, or has failed; `maybe` when it may have been taken all the same. */
  ended(process: RunningProcess, name: Name, operation: Operation, maybe: boolean): void {
    this.#underWay.set(name, (this.#underWay.get(name) ?? 1) - 1);
    for (const incarnation of this.alive(name)) incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, process.clock.nowMs());
    const tick = this.tick();
    operation.inFlight -= 1;
    operation.maybe ||= maybe;
    if (operation.inFlight > 0) return;
    operation.endedAt = tick;
    operation.refused = !operation.acked && !operation.maybe;
  }

  appended(
    process: RunningProcess,
    name: Name,
    operation: Operation,
    outcome: Appended,
    { since, sentMs, isRetry, before, producer }: Try,
  ): void {
    operation.refused = false;
    operation.maybe = true;
    // Another incarnation of the name may take it as well: which one did is in the token, though not in when it was sent.
    if (!outcome.duplicate && operation.stored.length > 0) {
      const { check } = placeOf(outcome.nextOffset);
      must(!operation.takenBy.has(check), () => `operation ${operation.id} was taken twice`);
      operation.takenBy.add(check);
    }
    const only = this.#onlyOne(name, before);
    const wasElsewhere = operation.inside !== null && operation.inside !== only;
    must(
      !outcome.duplicate || isRetry || operation.stored.length === 0,
      () => `operation ${operation.id} was called a duplicate at its first try`,
    );
    if (producer !== null && (producer.lastAcked === null || producer.lastAcked.id < operation.id)) producer.lastAcked = operation;
    if (outcome.duplicate && only !== undefined && !wasElsewhere) {
      only.cited.ends(outcome.nextOffset, outcome.closed);
      if (operation.producer !== null && outcome.producer !== null) only.cited.reached(operation.producer.id, outcome.producer);
    }
    if (outcome.duplicate && operation.stored.length === 0) return;
    if (only === undefined || wasElsewhere) return;
    if (!outcome.duplicate) only.appendAnswered(sentMs, process.clock.nowMs());
    if (!only.wasThereSince(since, process.clock.nowMs())) only.acked = true;
    operation.inside = only;
    if (!only.operations.includes(operation)) only.operations.push(operation);
    if (outcome.duplicate) operation.acked = true;
    else this.#acknowledge(operation, only, outcome.nextOffset);
  }

  /** The stream that an answer is about, where there was only one from when it was asked for until now. */
  #onlyOne(name: Name, before: readonly Incarnation[]): Incarnation | undefined {
    const candidates = new Set([...before, ...this.alive(name)]);
    return candidates.size === 1 ? [...candidates][0] : undefined;
  }

  #acknowledge(operation: Operation, incarnation: Incarnation, token: string): void {
    const to = positionOf(token);
    this.acknowledged += 1;
    operation.acked = true;
    operation.from = to - operation.stored.length;
    incarnation.observeToken(to, token);
    incarnation.ackedTail = Math.max(incarnation.ackedTail, to);
    must(
      incarnation.closedAt === null || to <= incarnation.closedAt,
      () => `${incarnation.tag}: operation ${operation.id} was taken after the closure`,
    );
    if (operation.closes) incarnation.observeClosed(to);
    if (operation.seq !== null && (incarnation.lastSeq === null || operation.seq > incarnation.lastSeq))
      incarnation.lastSeq = operation.seq;
  }

  appendRefused(process: RunningProcess, name: Name, operation: Operation, refused: Refused, { since, isNext, before }: Try): void {
    const nowMs = process.clock.nowMs();
    const there = this.alive(name).filter((incarnation) => incarnation.wasThereSince(since, nowMs));
    this.#onlyOne(name, before)?.cited.refused(operation, refused);
    const says = (): string => `operation ${operation.id} on ${name.name} was refused: ${JSON.stringify(refused)}`;
    switch (refused.code) {
      case "stream-not-found":
        return must(there.length === 0 && !this.holders.mustHold(name.name, since, nowMs), says);
      case "stream-gone":
        return this.#assertHeld(process, name, since);
      case "stream-closed":
        // The append that closed the stream is told that it did, however often it comes.
        must(!(operation.closes && operation.producer !== null && there.some(({ operations }) => operations.includes(operation))), says);
        return must(this.alive(name).some(({ closedAt }) => closedAt !== null) || this.#mayHaveClosed(name), says);
      case "storage-full":
      case "overloaded":
        // Too many open files are a fault that passes; too much in memory is none.
        return must(this.sawFull || this.faultInjected || isForLackOfMemory(refused), says);
      case "storage-unavailable":
        return must(process.fault !== null, says);
      case "producer-gap":
      case "epoch-must-start-at-zero":
      case "stale-epoch":
        return must(there.length === 0 || !isNext || refused.code === "stale-epoch", says);
      case "stream-seq-regression":
        return must(operation.seq !== null && (Number(operation.seq) < operation.id || there.length === 0), says);
      default:
        throw new Violation(says());
    }
  }

  #mayHaveClosed({ name }: Name): boolean {
    return [...this.#operations.values()].some((operation) => operation.closes && operation.name === name && !operation.refused);
  }

  /** Returns what `deletionAnswered` needs to know. */
  deletionSent(name: Name): OpenDeletion {
    const deletion: OpenDeletion = { since: this.tick(), name, targets: [] };
    this.#openDeletes.set(deletion.since, deletion);
    for (const incarnation of this.alive(name)) this.#mayDelete(deletion, incarnation);
    return deletion;
  }

  #mayDelete({ since, targets }: OpenDeletion, incarnation: Incarnation): void {
    targets.push(incarnation);
    incarnation.openDeletes.add(since);
    incarnation.lastDeleteAt = this.#tick;
  }

  deletionAnswered(process: RunningProcess, { since, name, targets }: OpenDeletion, outcome: DeleteOutcome): void {
    const tick = this.tick();
    this.#openDeletes.delete(since);
    for (const incarnation of targets) incarnation.lastDeleteAt = tick;
    if (outcome.kind === "deleted") {
      for (const incarnation of targets) {
        if (incarnation.endedAt >= since) continue;
        incarnation.dead = true;
        incarnation.releasedAt = Math.min(incarnation.releasedAt, tick);
      }
      return;
    }
    if (outcome.code === "storage-unavailable") return must(process.fault !== null, () => "deletion refused without a fault");
    for (const incarnation of targets) incarnation.openDeletes.delete(since);
    if (outcome.code === "stream-not-found") return this.#assertNotThere(process, name, since);
    if (outcome.code === "stream-gone") return this.#assertHeld(process, name, since);
    const isPassing =
      (outcome.code === "storage-full" && this.sawFull) || (outcome.code === "overloaded" && (this.sawFull || this.faultInjected));
    must(isPassing, () => `deletion refused: ${outcome.code}`);
  }

  #assertNotThere(process: RunningProcess, name: Name, since: number): void {
    must(!this.holders.mustHold(name.name, since, process.clock.nowMs()), () => `${name.name} was not found, but forks of it are there`);
    for (const incarnation of this.alive(name)) {
      must(!incarnation.wasThereSince(since, process.clock.nowMs()), () => `${incarnation.tag} was not found`);
    }
  }

  notFound(process: RunningProcess, name: Name, asked: { readonly since: number; readonly askedMs: number }, code: Refused["code"]): void {
    if (code === "storage-unavailable") return must(process.fault !== null, () => `${name.name} can't be found: ${code}`);
    must(code === "stream-not-found" || code === "stream-gone", () => `${name.name} can't be found: ${code}`);
    if (code === "stream-gone") this.#assertHeld(process, name, asked.since);
    else this.#assertNotThere(process, name, asked.since);
    // What the disk failed at may be there after the next start.
    if (process.fault !== null) return;
    for (const incarnation of this.alive(name)) {
      const wasLost = !Number.isFinite(incarnation.latestDeadlineMs) || asked.askedMs >= this.#latestDeadlineMs(name, incarnation);
      if (incarnation.endedAt < asked.since && wasLost) incarnation.dead = true;
    }
  }

  /** A stream was found: is it one that can be there, as it was left? `tailsBefore` are the ends known when it was asked for. */
  found(
    process: RunningProcess,
    name: Name,
    stream: Stream,
    asked: { readonly since: number; readonly askedMs: number; readonly ackedTails: ReadonlyMap<Incarnation, number> },
  ): Incarnation {
    const incarnation = this.incarnationOf(name, stream);
    const { tag } = incarnation;
    must(!incarnation.dead, () => `${tag} is back`);
    must(
      asked.askedMs < this.#latestDeadlineMs(name, incarnation) || incarnation.endedAt >= asked.since,
      () => `${tag} should have expired`,
    );
    for (const other of this.alive(name))
      if (process.fault === null && other !== incarnation && other.endedAt < asked.since) other.dead = true;
    incarnation.seen(this.#tick);
    // A deletion that the disk failed at may have happened, as the next start shows.
    for (const id of incarnation.openDeletes) if (process.fault === null && !this.#openDeletes.has(id)) incarnation.openDeletes.delete(id);
    this.#identities.observe(incarnation, stream.id);
    incarnation.observeOrigin(stream.config.forkedFrom, this.#identities.sourceOf(this.names, stream));
    incarnation.observeConfig(stream.config, process.clock.nowMs());
    observeBeginning(incarnation, stream.stored, process.retention, process.clock.nowMs());
    must(stream.tail >= (asked.ackedTails.get(incarnation) ?? 0), () => `${tag}: it ends at ${stream.tail}, before acknowledged data`);
    must(incarnation.closedAt === null || stream.closed, () => `${tag} is no longer closed`);
    return incarnation;
  }

  #latestDeadlineMs(name: Name, incarnation: Incarnation): number {
    const mayBeTouchedNow = incarnation.lifetime?.expiresAtMs === null && (this.#underWay.get(name) ?? 0) > 0;
    return mayBeTouchedNow ? Infinity : incarnation.latestDeadlineMs;
  }

  #all(): Incarnation[] {
    return this.names.flatMap(({ incarnations }) => incarnations);
  }
}
