import { parseOffset } from "../../src/protocol/offset.js";
import type { AppendOutcome, Appended, Refused } from "../../src/stream/outcome.js";
import { DeletedStreamError, type Stream } from "../../src/stream/stream.js";
import type { Random } from "../helpers/random.js";
import { Incarnation, must, Violation } from "./model.js";
import { payloadOf, type Operation, type PayloadKind, type Producer } from "./operations.js";
import type { RunningProcess } from "./running-process.js";

interface Name {
  readonly name: string;
  readonly kind: PayloadKind;
  readonly incarnations: Incarnation[];
}

const CONTENT_TYPES: Record<PayloadKind, string> = { json: "application/json", text: "text/plain", binary: "application/octet-stream" };
const NO_BYTES = Buffer.alloc(0);

/** All clients of the server in one: what they ask for, what they were told, and what must therefore be true. */
export class Client {
  acknowledged = 0;
  /** Whether the disk was made to fail, so that failures are to be expected. */
  faultInjected = false;
  sawFull = false;
  readonly #random: Random;
  readonly #trace: ((line: string) => void) | null;
  readonly #names: readonly Name[];
  readonly #operations = new Map<number, Operation>();
  readonly #ids = new Map<string, string>();
  readonly #openDeletes = new Set<number>();
  #inFlight = 0;
  #tick = 0;
  #broken: unknown = null;

  constructor(random: Random, trace: ((line: string) => void) | null) {
    this.#random = random;
    this.#trace = trace;
    const kinds: readonly (readonly [string, PayloadKind])[] = [["chat/1", "json"], ["Logs", "text"], ["blob", "binary"], ["chat/2", "json"]];
    this.#names = kinds.slice(0, random.integer(1, kinds.length)).map(([name, kind]) => ({ name, kind, incarnations: [] }));
  }

  /** Throws what went wrong in the background. */
  rethrow(): void {
    if (this.#broken !== null) throw this.#broken;
  }

  /** Does one thing that clients do; does not wait for the answer. */
  act(process: RunningProcess): void {
    const name = this.#random.pick(this.#names);
    const isKnown = name.incarnations.some((incarnation) => !incarnation.dead);
    const act = this.#random.weighted<(process: RunningProcess, name: Name) => Promise<void>>([
      [isKnown ? 2 : 20, (...where) => this.#create(...where)],
      [12, (...where) => this.#append(...where)],
      [12, (...where) => this.#produce(...where)],
      [8, (...where) => this.#read(...where)],
      [3, (...where) => this.#follow(...where)],
      [2, (...where) => this.#regress(...where)],
      [1.5, (...where) => this.#delete(...where)],
      [0.5, (...where) => this.#close(...where)],
    ]);
    const burst = this.#random.chance(0.2) ? this.#random.integer(2, 6) : 1;
    for (let count = 0; count < burst; count += 1) this.#background(process, act(process, name));
  }

  /** Resolves when everything is answered. */
  async quiesce(): Promise<void> {
    while (this.#inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  /** The process is gone: what was under way is neither done nor not done. */
  crashed(nowMs: number): void {
    this.#tick += 1;
    this.#inFlight = 0;
    this.#openDeletes.clear();
    for (const operation of this.#operations.values()) {
      if (operation.inFlight === 0) continue;
      operation.inFlight = 0;
      operation.maybe = true;
      operation.endedAt = this.#tick;
    }
    for (const incarnation of this.#all()) {
      if (incarnation.endedAt === Infinity) incarnation.endedAt = this.#tick;
      incarnation.touchedMs = incarnation.durablyTouchedMs;
      // What was under way may have been taken at the last moment.
      incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, incarnation.dead ? 0 : nowMs);
    }
  }

  closing(): void {
    this.#trace?.("closing");
  }

  /** Everything is permanent, notes of reads too. */
  closedCleanly(): void {
    for (const incarnation of this.#all()) incarnation.durablyTouchedMs = incarnation.touchedMs;
  }

  /** Reads every stream to its end while nothing else goes on. */
  async checkAll(process: RunningProcess): Promise<void> {
    for (const name of this.#names) {
      const stream = await this.#find(process, name);
      if (!process.isAlive) return;
      if (stream !== null) await this.#checkStream(process, name, stream);
      if (!process.isAlive) return;
    }
  }

  async #checkStream(process: RunningProcess, name: Name, stream: Stream): Promise<void> {
    const incarnation = this.#incarnationOf(name, stream);
    const { tail } = stream;
    const pieces: Buffer[] = [];
    stream.retain();
    try {
      for (let at = 0; at < tail; ) {
        const chunk = await stream.read(at, this.#random.pick([50, 700, 100_000]));
        if (!process.isAlive || this.#mayBeGone(process, incarnation)) return;
        must(chunk.from === at && chunk.to > at, () => `${incarnation.tag}: a read from ${at} gave ${chunk.from}..${chunk.to}`);
        incarnation.observeToken(chunk.to, stream.offsetAt(chunk.to));
        pieces.push(Buffer.from(chunk.bytes));
        at = chunk.to;
      }
      must(stream.tail === tail, () => `${incarnation.tag}: the tail moved by itself`);
      incarnation.checkWhole(Buffer.concat(pieces), (id) => this.#operations.get(id));
      this.#checkState(incarnation, stream);
    } catch (error) {
      // It was deleted, or expired, in the middle: whether it may have been is what other answers tell.
      if (!(error instanceof DeletedStreamError)) throw error;
    } finally {
      stream.release();
    }
  }

  #checkState(incarnation: Incarnation, stream: Stream): void {
    const { state } = stream.stored;
    const { tag } = incarnation;
    must(incarnation.closedAt === null || stream.closed, () => `${tag} is no longer closed`);
    if (stream.closed) incarnation.observeClosed(stream.tail);
    must(state.lastSeq === incarnation.lastSeq, () => `${tag}: Stream-Seq is ${state.lastSeq}, the last append had ${incarnation.lastSeq}`);
    const last = new Map<string, Operation>();
    for (const operation of [...incarnation.operations].sort((left, right) => (left.from ?? 0) - (right.from ?? 0) || left.id - right.id)) {
      if (operation.producer !== null) last.set(operation.producer.id, operation);
    }
    for (const [id, { producer }] of last) {
      const mark = state.producers?.get(id);
      must(mark?.epoch === producer?.epoch && mark?.seq === producer?.seq, () => `${tag}: producer ${id} is at ${JSON.stringify(mark)}, its last append was ${JSON.stringify(producer)}`);
    }
    must((state.producers?.size ?? 0) === last.size, () => `${tag}: there are ${state.producers?.size} producers, not ${last.size}`);
  }

  #background(process: RunningProcess, work: Promise<void>): void {
    this.#inFlight += 1;
    work.then(
      () => {
        if (process.isAlive) this.#inFlight -= 1;
      },
      (error: unknown) => {
        if (!process.isAlive) return;
        this.#inFlight -= 1;
        // A read may find the disk failing; nobody was told anything then.
        if (!(error instanceof Violation) && this.faultInjected) return;
        this.#broken ??= error;
      },
    );
  }

  #all(): Incarnation[] {
    return this.#names.flatMap(({ incarnations }) => incarnations);
  }

  #alive(name: Name): Incarnation[] {
    return name.incarnations.filter((incarnation) => !incarnation.dead);
  }

  #mayBeGone(process: RunningProcess, incarnation: Incarnation): boolean {
    return incarnation.dead || incarnation.openDeletes.size > 0 || process.clock.nowMs() >= incarnation.earliestDeadlineMs;
  }

  #newOperation(name: Name, more: Partial<Pick<Operation, "closes" | "producer" | "seq">> & { readonly length: number | null }): Operation {
    const id = this.#operations.size + 1;
    this.#tick += 1;
    const { closes = false, producer = null, seq = null, length } = more;
    const { body, stored } = length === null ? { body: NO_BYTES, stored: NO_BYTES } : payloadOf(id, name.kind, length);
    const operation: Operation = { id, name: name.name, body, stored, closes, producer, seq, invokedAt: this.#tick, endedAt: Infinity, inFlight: 0, tries: 0, copies: 0, inside: null, acked: false, from: null, refused: false, maybe: false };
    this.#operations.set(id, operation);
    return operation;
  }

  #length(): number {
    return this.#random.weighted([[6, this.#random.integer(0, 60)], [3, this.#random.integer(60, 400)], [1, this.#random.integer(400, 5000)]]);
  }

  async #create(process: RunningProcess, name: Name): Promise<void> {
    const random = this.#random;
    const nowMs = process.clock.nowMs();
    const closed = random.chance(0.1);
    const initial = this.#newOperation(name, { length: random.chance(0.5) ? null : this.#length(), closes: closed });
    const ttlSeconds = random.chance(0.2) ? random.integer(1, 40) : null;
    const expiresAtMs = ttlSeconds === null && random.chance(0.1) ? nowMs + random.integer(1, 40_000) : null;
    const tag = `${CONTENT_TYPES[name.kind]};i=${initial.id}`;
    const incarnation = new Incarnation(initial, { tag, ttlSeconds, expiresAtMs, isJson: name.kind === "json" }, nowMs);
    name.incarnations.push(incarnation);
    initial.inside = incarnation;
    initial.inFlight = 1;
    this.#trace?.(`create ${name.name} ${tag} ttl=${ttlSeconds} expires=${expiresAtMs} closed=${closed} ${initial.stored.length} bytes`);
    const outcome = await process.registry.create(name.name, { contentType: tag, ttlSeconds, expiresAtMs, closed, fork: null, body: initial.body });
    if (!process.isAlive) return;
    this.#trace?.(`created ${tag}: ${JSON.stringify(outcome)}`);
    this.#tick += 1;
    initial.inFlight = 0;
    initial.endedAt = incarnation.endedAt = this.#tick;
    incarnation.maybeTouchedMs = process.clock.nowMs();
    if (outcome.kind === "refused") return this.#creationRefused(process, name, incarnation, outcome);
    if (!outcome.created) {
      this.#neverWas(incarnation);
      const other = name.incarnations.find(({ tag: otherTag }) => otherTag === outcome.contentType);
      return must(other !== undefined && !other.dead, () => `${tag}: found ${outcome.contentType}, which is gone`);
    }
    for (const other of this.#alive(name)) {
      if (other === incarnation) continue;
      must(!other.wasThereSince(incarnation.invokedAt, process.clock.nowMs()), () => `${tag} was created while ${other.tag} was there`);
      if (other.endedAt < incarnation.invokedAt) other.dead = true;
    }
    incarnation.acked = true;
    incarnation.operations.push(initial);
    this.#acknowledge(initial, incarnation, outcome.nextOffset);
    must(outcome.closed === closed, () => `${tag}: created closed=${outcome.closed}`);
  }

  #creationRefused(process: RunningProcess, name: Name, incarnation: Incarnation, { code }: Refused): void {
    if (code === "storage-unavailable") {
      must(process.fault !== null, () => "creation refused without a fault");
      incarnation.initial.maybe = true;
      return;
    }
    this.#neverWas(incarnation);
    if (code === "config-mismatch") return must(this.#alive(name).length > 0, () => `${incarnation.tag}: compared with a stream that is gone`);
    if (code === "storage-full") return must(this.sawFull, () => "creation refused as full");
    must(code === "overloaded", () => `${incarnation.tag}: refused as ${code}`);
  }

  #neverWas(incarnation: Incarnation): void {
    incarnation.dead = true;
    incarnation.initial.refused = true;
  }

  async #append(process: RunningProcess, name: Name): Promise<void> {
    const closes = this.#random.chance(0.02);
    const operation = this.#newOperation(name, { length: this.#length(), closes, seq: null });
    if (!this.#random.chance(0.3)) return this.#send(process, name, operation);
    const seq = String(operation.id).padStart(8, "0");
    const withSeq = { ...operation, seq };
    this.#operations.set(operation.id, withSeq);
    return this.#send(process, name, withSeq);
  }

  async #close(process: RunningProcess, name: Name): Promise<void> {
    return this.#send(process, name, this.#newOperation(name, { length: null, closes: true }));
  }

  /** An append with a `Stream-Seq` that is not higher than one that was acknowledged: it must be refused. */
  async #regress(process: RunningProcess, name: Name): Promise<void> {
    const [incarnation, ...more] = this.#alive(name);
    if (incarnation === undefined || more.length > 0 || incarnation.lastSeq === null) return;
    // An append from before its creation was for a stream that had the name earlier, whenever its answer came.
    if (Number(incarnation.lastSeq) < incarnation.initial.id) return;
    const operation = this.#newOperation(name, { length: this.#length(), seq: incarnation.lastSeq });
    await this.#send(process, name, operation);
    if (!process.isAlive) return;
    const isNew = this.#alive(name).some((other) => other !== incarnation) || incarnation.dead;
    must(!operation.acked || isNew, () => `${incarnation.tag}: operation ${operation.id} was taken with the old Stream-Seq ${operation.seq}`);
  }

  /** A producer goes on: with all that was not acknowledged, again and in order, or with something new. */
  async #produce(process: RunningProcess, name: Name): Promise<void> {
    const incarnation = this.#alive(name).at(-1);
    if (incarnation === undefined) return;
    const random = this.#random;
    let producer = incarnation.producers.find(() => random.chance(0.6));
    if (producer === undefined) {
      producer = { id: `producer ${incarnation.initial.id}/${incarnation.producers.length}`, epoch: 0, nextSeq: 0, unacked: [], lastAcked: null };
      incarnation.producers.push(producer);
    }
    await this.#goOn(process, name, producer);
  }

  async #goOn(process: RunningProcess, name: Name, producer: Producer): Promise<void> {
    const random = this.#random;
    const waiting = producer.unacked.filter(({ acked }) => !acked);
    producer.unacked.splice(0, producer.unacked.length, ...waiting);
    const failed = waiting.some(({ inFlight }) => inFlight === 0);
    if (producer.lastAcked !== null && random.chance(0.15)) return this.#send(process, name, producer.lastAcked, producer);
    if (failed || (waiting.length > 0 && random.chance(0.2))) {
      await Promise.all(waiting.map((operation) => this.#send(process, name, operation, producer)));
      return;
    }
    if (waiting.length === 0 && producer.nextSeq > 0 && random.chance(0.05)) {
      producer.epoch += 1;
      producer.nextSeq = 0;
    }
    const stamp = { id: producer.id, epoch: producer.epoch, seq: producer.nextSeq };
    producer.nextSeq += 1;
    const operation = this.#newOperation(name, { length: this.#length(), producer: stamp, closes: random.chance(0.01) });
    producer.unacked.push(operation);
    await this.#send(process, name, operation, producer);
  }

  async #send(process: RunningProcess, name: Name, operation: Operation, producer: Producer | null = null): Promise<void> {
    this.#tick += 1;
    const since = this.#tick;
    const nowMs = process.clock.nowMs();
    const isRetry = operation.tries > 0;
    operation.tries += 1;
    operation.inFlight += 1;
    operation.refused = false;
    operation.endedAt = Infinity;
    const before = this.#alive(name);
    for (const incarnation of before) incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, nowMs);
    const predecessor = producer?.unacked.find(({ id }) => id < operation.id) ?? null;
    const isNext = producer !== null && predecessor === null;
    const { body, closes, producer: stamp, seq } = operation;
    const contentType = body.length === 0 ? null : CONTENT_TYPES[name.kind];
    this.#trace?.(`append ${operation.id} to ${name.name} (${operation.stored.length} bytes, ${JSON.stringify({ closes, stamp, seq, isRetry })})`);
    let outcome: AppendOutcome;
    try {
      outcome = await process.registry.append(name.name, { contentType, body, closes, producer: stamp, seq });
    } catch (error) {
      if (process.isAlive) this.#ended(operation, true);
      throw error;
    }
    if (!process.isAlive) return;
    this.#trace?.(`append ${operation.id}: ${JSON.stringify(outcome)}`);
    if (outcome.kind === "refused") {
      this.#ended(operation, outcome.code === "storage-unavailable");
      return this.#appendRefused(process, name, operation, outcome, since, isNext);
    }
    this.#ended(operation, false);
    for (const incarnation of this.#alive(name)) incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, process.clock.nowMs());
    this.#appended(process, name, operation, outcome, { since, nowMs, isRetry, producer });
  }

  #ended(operation: Operation, maybe: boolean): void {
    this.#tick += 1;
    operation.inFlight -= 1;
    operation.maybe ||= maybe;
    if (operation.inFlight > 0) return;
    operation.endedAt = this.#tick;
    operation.refused = !operation.acked && !operation.maybe;
  }

  #appended(process: RunningProcess, name: Name, operation: Operation, outcome: Appended, sent: { since: number; nowMs: number; isRetry: boolean; producer: Producer | null }): void {
    operation.refused = false;
    operation.maybe = true;
    const { producer, since, nowMs, isRetry } = sent;
    const isNewCopy = !outcome.duplicate && operation.stored.length > 0;
    if (isNewCopy) operation.copies += 1;
    const candidates = this.#alive(name);
    const only = candidates.length === 1 ? candidates[0] : undefined;
    const wasElsewhere = operation.inside !== null && operation.inside !== only;
    must(!outcome.duplicate || isRetry || operation.stored.length === 0, () => `operation ${operation.id} was called a duplicate at its first try`);
    must(!(isNewCopy && operation.copies > 1 && only !== undefined && !wasElsewhere), () => `operation ${operation.id} was taken twice`);
    if (producer !== null && (producer.lastAcked === null || producer.lastAcked.id < operation.id)) producer.lastAcked = operation;
    if (outcome.duplicate && operation.stored.length === 0) return;
    if (only === undefined || wasElsewhere) return;
    const wasThere = only.wasThereSince(since, process.clock.nowMs());
    only.touchedMs = Math.max(only.touchedMs, outcome.duplicate ? 0 : nowMs);
    only.durablyTouchedMs = Math.max(only.durablyTouchedMs, outcome.duplicate ? 0 : nowMs);
    if (!wasThere && !only.acked) only.acked = true;
    operation.inside = only;
    if (!only.operations.includes(operation)) only.operations.push(operation);
    if (outcome.duplicate) operation.acked = true;
    else this.#acknowledge(operation, only, outcome.nextOffset);
  }

  #acknowledge(operation: Operation, incarnation: Incarnation, token: string): void {
    const to = positionOf(token);
    const from = to - operation.stored.length;
    this.acknowledged += 1;
    operation.acked = true;
    operation.from = from;
    incarnation.observeToken(to, token);
    incarnation.ackedTail = Math.max(incarnation.ackedTail, to);
    must(incarnation.closedAt === null || to <= incarnation.closedAt, () => `${incarnation.tag}: operation ${operation.id} was taken after the closure`);
    if (operation.closes) incarnation.observeClosed(to);
    if (operation.seq !== null && (incarnation.lastSeq === null || operation.seq > incarnation.lastSeq)) incarnation.lastSeq = operation.seq;
  }

  #appendRefused(process: RunningProcess, name: Name, operation: Operation, refused: Refused, since: number, isNext: boolean): void {
    const nowMs = process.clock.nowMs();
    const there = this.#alive(name).filter((incarnation) => incarnation.wasThereSince(since, nowMs));
    const says = (): string => `operation ${operation.id} on ${name.name} was refused: ${JSON.stringify(refused)}`;
    switch (refused.code) {
      case "stream-not-found":
        return must(there.length === 0, says);
      case "stream-closed":
        return must(this.#alive(name).some((incarnation) => incarnation.closedAt !== null) || [...this.#operations.values()].some((other) => other.closes && other.name === name.name && !other.refused), says);
      case "storage-full":
      case "overloaded":
        // Too many open files are a fault that passes.
        return must(this.sawFull || this.faultInjected, says);
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

  async #delete(process: RunningProcess, name: Name): Promise<void> {
    this.#tick += 1;
    const since = this.#tick;
    const targets = this.#alive(name);
    this.#openDeletes.add(since);
    for (const incarnation of targets) {
      incarnation.openDeletes.add(since);
      incarnation.lastDeleteAt = since;
    }
    this.#trace?.(`delete ${name.name}`);
    const outcome = await process.registry.delete(name.name);
    if (!process.isAlive) return;
    this.#trace?.(`deleted ${name.name}: ${JSON.stringify(outcome)}`);
    this.#tick += 1;
    this.#openDeletes.delete(since);
    for (const incarnation of targets) incarnation.lastDeleteAt = this.#tick;
    if (outcome.kind === "deleted") {
      for (const incarnation of targets) if (incarnation.endedAt < since) incarnation.dead = true;
      return;
    }
    if (outcome.code === "storage-unavailable") return must(process.fault !== null, () => "deletion refused without a fault");
    for (const incarnation of targets) incarnation.openDeletes.delete(since);
    if (outcome.code === "stream-not-found") return this.#assertNotThere(process, name, since);
    const isPassing = (outcome.code === "storage-full" && this.sawFull) || (outcome.code === "overloaded" && (this.sawFull || this.faultInjected));
    must(isPassing, () => `deletion refused: ${outcome.code}`);
  }

  #assertNotThere(process: RunningProcess, name: Name, since: number): void {
    for (const incarnation of this.#alive(name)) {
      must(!incarnation.wasThereSince(since, process.clock.nowMs()), () => `${incarnation.tag} was not found`);
    }
  }

  /** Looks a stream up, and compares what is found with what can be. */
  async #find(process: RunningProcess, name: Name): Promise<Stream | null> {
    this.#tick += 1;
    const since = this.#tick;
    const askedMs = process.clock.nowMs();
    const ackedTails = new Map(this.#alive(name).map((incarnation) => [incarnation, incarnation.ackedTail]));
    const found = await process.registry.find(name.name);
    if (!process.isAlive) return null;
    const ended = this.#alive(name).filter(({ endedAt }) => endedAt < since);
    if ("code" in found) {
      this.#trace?.(`find ${name.name}: ${found.code}`);
      if (found.code === "storage-unavailable") {
        must(process.fault !== null, () => `${name.name} can't be found: ${found.code}`);
        return null;
      }
      must(found.code === "stream-not-found", () => `${name.name} can't be found: ${found.code}`);
      this.#assertNotThere(process, name, since);
      for (const incarnation of ended) if (!Number.isFinite(incarnation.latestDeadlineMs) || askedMs >= incarnation.latestDeadlineMs) incarnation.dead = true;
      return null;
    }
    const incarnation = this.#incarnationOf(name, found);
    this.#trace?.(`find ${name.name}: ${incarnation.tag}, tail ${found.tail}`);
    must(!incarnation.dead, () => `${incarnation.tag} is back`);
    must(askedMs < incarnation.latestDeadlineMs || incarnation.endedAt >= since, () => `${incarnation.tag} should have expired`);
    for (const other of ended) if (other !== incarnation) other.dead = true;
    incarnation.acked = true;
    incarnation.endedAt = Math.min(incarnation.endedAt, this.#tick);
    for (const id of incarnation.openDeletes) if (!this.#openDeletes.has(id)) incarnation.openDeletes.delete(id);
    incarnation.observeId(found.id, this.#ids);
    const { ttlSeconds, expiresAtMs } = found.config;
    must(ttlSeconds === incarnation.ttlSeconds && expiresAtMs === incarnation.expiresAtMs, () => `${incarnation.tag}: its configuration changed`);
    must(found.tail >= (ackedTails.get(incarnation) ?? 0), () => `${incarnation.tag}: it ends at ${found.tail}, before acknowledged data`);
    must(incarnation.closedAt === null || found.closed, () => `${incarnation.tag} is no longer closed`);
    return found;
  }

  #incarnationOf(name: Name, stream: Stream): Incarnation {
    const incarnation = name.incarnations.find(({ tag }) => tag === stream.config.contentType);
    if (incarnation === undefined) throw new Violation(`${name.name} is ${stream.config.contentType}, which nobody created`);
    return incarnation;
  }

  async #read(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#find(process, name);
    if (stream === null) return;
    const incarnation = this.#incarnationOf(name, stream);
    stream.retain();
    try {
      if (this.#random.chance(0.5)) this.#touch(process, incarnation, stream);
      await this.#locate(process, incarnation, stream);
      await this.#readFrom(process, incarnation, stream, this.#random.pick([0, incarnation.seen.length]));
    } finally {
      stream.release();
    }
  }

  #touch(process: RunningProcess, incarnation: Incarnation, stream: Stream): void {
    if (!process.isAlive) return;
    const nowMs = process.clock.nowMs();
    this.#trace?.(`touch ${incarnation.tag} at ${nowMs}`);
    stream.touch();
    // A deadline that has passed meanwhile is not taken back.
    if (nowMs < incarnation.earliestDeadlineMs && !this.sawFull) incarnation.touchedMs = Math.max(incarnation.touchedMs, nowMs);
    incarnation.maybeTouchedMs = Math.max(incarnation.maybeTouchedMs, nowMs);
  }

  async #locate(process: RunningProcess, incarnation: Incarnation, stream: Stream): Promise<void> {
    const known = [...incarnation.tokens].filter(([position]) => position <= stream.tail);
    if (known.length === 0) return;
    const [position, token] = this.#random.pick(known);
    const offset = parseOffset(token);
    must(offset !== null, () => `${token} is not a token`);
    const located = await this.#unlessGone(process, incarnation, stream.locate(offset));
    if (located === null) return;
    // A position inside a batch that a text reader was given is not one of a message.
    must(located === position, () => `${incarnation.tag}: ${token} means ${JSON.stringify(located)}, not ${position}`);
  }

  async #readFrom(process: RunningProcess, incarnation: Incarnation, stream: Stream, from: number): Promise<void> {
    const chunk = await this.#unlessGone(process, incarnation, stream.read(from, this.#random.pick([1, 100, 1000, 100_000])));
    if (chunk === null) return;
    must(chunk.from === from, () => `${incarnation.tag}: asked for ${from}, got ${chunk.from}`);
    incarnation.observe(from, chunk.bytes);
    incarnation.observeToken(chunk.to, stream.offsetAt(chunk.to));
    if (chunk.closed) incarnation.observeClosed(chunk.to);
  }

  /** What `work` gives, or `null` where the process or the stream is gone meanwhile. */
  async #unlessGone<T>(process: RunningProcess, incarnation: Incarnation, work: T | Promise<T>): Promise<T | null> {
    try {
      const value = await work;
      return process.isAlive ? value : null;
    } catch (error) {
      if (!process.isAlive || this.#mayBeGone(process, incarnation)) return null;
      throw error;
    }
  }

  /** A live reader: from the tail on it is told of everything, without a gap. */
  async #follow(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#find(process, name);
    if (stream === null) return;
    const incarnation = this.#incarnationOf(name, stream);
    stream.retain();
    let at = stream.tail;
    const onAdvance = (advance: { readonly from: number; readonly to: number; readonly closed: boolean; readonly ends: readonly number[] }): void => {
      if (!process.isAlive) return;
      this.#noting(() => {
        must(advance.from === at, () => `${incarnation.tag}: a live reader at ${at} was told of ${advance.from}`);
        must(advance.to === stream.tail || advance.to < stream.tail, () => `${incarnation.tag}: a live reader was told of ${advance.to}, past the tail`);
        at = advance.to;
        for (const end of advance.ends) incarnation.observeToken(end, stream.offsetAt(end));
        if (advance.closed) incarnation.observeClosed(advance.to);
      });
      if (advance.from <= incarnation.seen.length) this.#background(process, this.#readFrom(process, incarnation, stream, advance.from));
    };
    stream.feed.on("advance", onAdvance);
    for (let turns = this.#random.integer(1, 200); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    if (process.isAlive) stream.feed.off("advance", onAdvance);
    stream.release();
  }

  #noting(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#broken ??= error;
    }
  }
}

function positionOf(token: string): number {
  const offset = parseOffset(token);
  if (offset?.kind !== "at") throw new Violation(`${token} is not a place`);
  return offset.segmentStart + offset.byteInSegment;
}
