import { ALL_NAMES } from "../../src/protocol/names/name-range.js";
import { parseOffset } from "../../src/protocol/offset.js";
import type { ForkRequest } from "../../src/stream/rules/command.js";
import type { AppendOutcome, CreateOutcome } from "../../src/stream/rules/outcome.js";
import { DeletedStreamError, TrimmedStreamError, type Stream } from "../../src/stream/loaded/stream.js";
import { appendByName } from "../helpers/append.js";
import type { Random } from "../helpers/random.js";
import { isForLackOfMemory, type Ledger } from "./ledger.js";
import { must, type IncarnationConfig, type Origin } from "./model.js";
import { CONTENT_TYPES, type Name } from "./names.js";
import type { Operation, Producer } from "./operations.js";
import { Readers } from "./readers.js";
import type { RunningProcess } from "./running-process.js";
import { checkStream } from "./stream-check.js";
import { trimBefore } from "../helpers/trim.js";

/** How far beyond a producer's next number no producer comes. */
const NEVER_REACHED = 1000;

/** What clients do in some histories only. */
export interface Traits {
  /** Somebody drops the beginnings of streams. */
  readonly trims: boolean;
  readonly forks: boolean;
  /** Producers send again what is still under way. */
  readonly isImpatient: boolean;
  /** Streams come and go all the time. */
  readonly isRestless: boolean;
}

/** Told of each answer; `cites` says that it changed nothing, and only told of what was there. */
export type OnAnswer = (cites: boolean) => void;

/** What clients are made of. */
export interface ClientParts {
  readonly random: Random;
  /** Decides what came into the histories later, so that earlier seeds still do what they did. */
  readonly whims: Random;
  readonly ledger: Ledger;
  readonly traits: Traits;
  readonly trace: ((line: string) => void) | null;
  readonly onAnswer: OnAnswer;
}

/** All clients of the server in one: what they do. What that means, the ledger knows. */
export class Client {
  readonly #random: Random;
  readonly #ledger: Ledger;
  readonly #trace: ((line: string) => void) | null;
  readonly #traits: Traits;
  readonly #whims: Random;
  readonly #onAnswer: OnAnswer;
  readonly #readers: Readers;
  #inFlight = 0;
  #broken: unknown = null;

  constructor({ random, whims, ledger, traits, trace, onAnswer }: ClientParts) {
    this.#random = random;
    this.#whims = whims;
    this.#traits = traits;
    this.#ledger = ledger;
    this.#trace = trace;
    this.#onAnswer = onAnswer;
    this.#readers = new Readers({
      random,
      whims,
      ledger,
      trace,
      onAnswer,
      find: (process, name) => this.#find(process, name),
      background: (process, work) => this.#background(process, work),
      broken: (error) => (this.#broken ??= error),
    });
  }

  /** Throws what went wrong in the background. */
  rethrow(): void {
    if (this.#broken !== null) throw this.#broken;
  }

  /** Does one thing that clients do; does not wait for the answer. */
  act(process: RunningProcess): void {
    const name = this.#random.pick(this.#ledger.names);
    const { trims, forks, isRestless } = this.#traits;
    const isKnown = name.incarnations.some((incarnation) => !incarnation.dead);
    const act = this.#random.weighted<(process: RunningProcess, name: Name) => Promise<void>>([
      [isKnown ? 2 : 20, (...where) => this.#create(...where)],
      [12, (...where) => this.#append(...where)],
      [12, (...where) => this.#produce(...where)],
      [8, (...where) => this.#readers.read(...where)],
      [3, (...where) => this.#readers.follow(...where)],
      [2, (...where) => this.#regress(...where)],
      [isRestless ? 12 : forks ? 4 : 1.5, (...where) => this.#delete(...where)],
      [0.5, (...where) => this.#close(...where)],
      [forks ? 5 : 0, (...where) => this.#fork(...where)],
      [trims ? 3 : 0, (...where) => this.#trim(...where)],
    ]);
    const burst = this.#random.chance(0.2) ? this.#random.integer(2, 6) : 1;
    for (let count = 0; count < burst; count += 1) this.#background(process, act(process, name));
  }

  /** Resolves when everything is answered. */
  async quiesce(): Promise<void> {
    while (this.#inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  /** The process is gone, and will answer nothing more. */
  crashed(): void {
    this.#inFlight = 0;
  }

  /** Reads every stream to its end while nothing else goes on. */
  async checkAll(process: RunningProcess): Promise<void> {
    for (const name of this.#ledger.names) {
      try {
        await this.#check(process, name);
      } catch (error) {
        if (!process.isAlive) return;
        if (!this.#ledger.expects(error)) throw error;
      }
      if (!process.isAlive) return;
    }
  }

  /** Appends a little to every stream that takes it, so that its last segment is written to once more. */
  async appendToAll(process: RunningProcess): Promise<void> {
    for (const name of this.#ledger.names) {
      if (name.isDamaged || !process.isAlive) continue;
      const operation = this.#ledger.newOperation(name, { length: 5 });
      await this.#send(process, name, operation);
      name.isJustWritten = operation.acked;
    }
  }

  async #check(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#find(process, name);
    if (stream === null || !process.isAlive) return;
    await this.#checkListed(process, name, stream);
    if (!process.isAlive) return;
    await checkStream(process, this.#ledger, this.#ledger.incarnationOf(name, stream), stream, this.#random.pick([50, 700, 100_000]));
  }

  /** A stream that is there, before and afterwards, has its name in the list. */
  async #checkListed(process: RunningProcess, name: Name, stream: Stream): Promise<void> {
    const listed = await process.storage.streamList.names(ALL_NAMES, 1000);
    if (!process.isAlive || listed.includes(name.name) || (await this.#find(process, name)) !== stream) return;
    must(!process.isAlive, () => `${name.name} is not in the list: ${listed.join(", ")}`);
  }

  #background(process: RunningProcess, work: Promise<void>): void {
    this.#inFlight += 1;
    const ended = (error: unknown): void => {
      if (!process.isAlive) return;
      this.#inFlight -= 1;
      if (error !== null && !this.#ledger.expects(error)) this.#broken ??= error;
    };
    work.then(() => ended(null), ended);
  }

  #length(): number {
    return this.#random.weighted([
      [6, this.#random.integer(0, 60)],
      [3, this.#random.integer(60, 400)],
      [1, this.#random.integer(400, 5000)],
    ]);
  }

  /** Forks a stream at its tail, at a place that it gave out, or a little behind one. */
  async #fork(process: RunningProcess, source: Name): Promise<void> {
    const random = this.#random;
    const stream = await this.#find(process, source);
    if (stream === null) return;
    const expected = this.#ledger.incarnationOf(source, stream);
    const known = [...expected.tokens].filter(([position]) => position <= stream.tail);
    const [from, token] = known.length === 0 || random.chance(0.4) ? [null, null] : random.pick(known);
    const subOffset = from === null || random.chance(0.6) ? 0 : random.integer(1, source.kind === "json" ? 3 : 100);
    const target = random.pick(this.#ledger.names.filter(({ kind }) => kind === source.kind));
    const origin: Origin = { name: source.name, from, subOffset, tail: stream.tail, expected, inherits: true, source: null, point: null };
    const request = { source: source.name, offset: token, place: token === null ? null : parseOffset(token), subOffset };
    await this.#create(process, target, { origin, request });
    // What both share must stay, whoever drops it.
    if (this.#traits.trims && process.isAlive && this.#whims.chance(0.6)) await this.#trim(process, this.#whims.pick([source, target]));
  }

  async #create(
    process: RunningProcess,
    name: Name,
    fork: { readonly origin: Origin; readonly request: ForkRequest } | null = null,
  ): Promise<void> {
    const random = this.#random;
    const nowMs = process.clock.nowMs();
    const closed = random.chance(0.1);
    const initial = this.#ledger.newOperation(name, { length: random.chance(0.5) ? null : this.#length(), closes: closed });
    const ttlSeconds = random.chance(0.2) ? random.integer(1, 40) : null;
    const expiresAtMs = ttlSeconds === null && random.chance(0.1) ? nowMs + random.integer(1, 40_000) : null;
    const tag = `${CONTENT_TYPES[name.kind]};i=${initial.id}`;
    const origin = fork === null ? null : { ...fork.origin, inherits: ttlSeconds === null && expiresAtMs === null };
    const put = this.#put(process, name, initial, { tag, ttlSeconds, expiresAtMs }, origin, fork?.request ?? null);
    if (fork !== null || !this.#traits.isImpatient || !this.#whims.chance(0.2)) return put;
    // The same again: it finds what the first has made, when that is durable.
    const again = this.#ledger.newOperation(name, { length: null, closes: closed });
    await Promise.all([
      put,
      this.#put(process, name, again, { tag: `${CONTENT_TYPES[name.kind]};i=${again.id}`, ttlSeconds, expiresAtMs }, null, null),
    ]);
  }

  async #put(
    process: RunningProcess,
    name: Name,
    initial: Operation,
    config: Pick<IncarnationConfig, "tag" | "ttlSeconds" | "expiresAtMs">,
    origin: Origin | null,
    fork: ForkRequest | null,
  ): Promise<void> {
    const { tag, ttlSeconds, expiresAtMs } = config;
    const { closes: closed } = initial;
    const incarnation = this.#ledger.creationSent(name, initial, config, process.clock.nowMs(), origin);
    this.#trace?.(
      `create ${name.name} ${tag} ttl=${ttlSeconds} expires=${expiresAtMs} closed=${closed} ${initial.stored.length} bytes${fork === null ? "" : ` forked from ${JSON.stringify(fork)}`}`,
    );
    let outcome: CreateOutcome;
    try {
      outcome = await process.registry.create(name.name, { contentType: tag, ttlSeconds, expiresAtMs, closed, fork, body: initial.body });
    } catch (error) {
      // The source went, or its beginning, while the place in it was looked for.
      if (process.isAlive && (error instanceof DeletedStreamError || error instanceof TrimmedStreamError))
        return this.#ledger.creationCutShort(incarnation);
      throw error;
    }
    if (!process.isAlive) return;
    this.#trace?.(`created ${tag}: ${JSON.stringify(outcome)}`);
    this.#ledger.creationAnswered(process, name, incarnation, outcome);
    this.#onAnswer(outcome.kind === "refused" || !outcome.created);
  }

  async #append(process: RunningProcess, name: Name): Promise<void> {
    const closes = this.#random.chance(0.02);
    const seq = this.#random.chance(0.3) ? "own" : null;
    await this.#send(process, name, this.#ledger.newOperation(name, { length: this.#length(), closes, seq }));
  }

  async #close(process: RunningProcess, name: Name): Promise<void> {
    await this.#send(process, name, this.#ledger.newOperation(name, { length: null, closes: true }));
  }

  /** An append with a `Stream-Seq` that is not higher than one that was acknowledged: it must be refused. */
  async #regress(process: RunningProcess, name: Name): Promise<void> {
    if (this.#traits.isImpatient && this.#whims.chance(0.5)) return this.#misnumber(process, name);
    const [incarnation, ...more] = this.#ledger.alive(name);
    if (incarnation === undefined || more.length > 0 || incarnation.lastSeq === null) return;
    // An append from before its creation was for a stream that had the name earlier, whenever its answer came.
    if (Number(incarnation.lastSeq) < incarnation.initial.id) return;
    const operation = this.#ledger.newOperation(name, { length: this.#length(), seq: incarnation.lastSeq });
    await this.#send(process, name, operation);
    if (!process.isAlive) return;
    const isNew = this.#ledger.alive(name).some((other) => other !== incarnation) || incarnation.dead;
    must(
      !operation.acked || isNew,
      () => `${incarnation.tag}: operation ${operation.id} was taken with the old Stream-Seq ${operation.seq}`,
    );
  }

  /** An append with a number that a producer never comes to, of its epoch or one beside it: it must be refused. */
  async #misnumber(process: RunningProcess, name: Name): Promise<void> {
    const producer = this.#ledger.alive(name).at(-1)?.producers[0];
    if (producer === undefined) return;
    const stamp = {
      id: producer.id,
      epoch: Math.max(0, producer.epoch + this.#whims.pick([-1, 0, 1])),
      seq: producer.nextSeq + NEVER_REACHED,
    };
    const operation = this.#ledger.newOperation(name, { length: this.#length(), producer: stamp });
    await this.#send(process, name, operation);
    must(!operation.acked, () => `operation ${operation.id} was taken with the number ${JSON.stringify(stamp)}`);
  }

  /** A producer goes on: with all that was not acknowledged, again and in order, or with something new. */
  async #produce(process: RunningProcess, name: Name): Promise<void> {
    const incarnation = this.#ledger.alive(name).at(-1);
    if (incarnation === undefined) return;
    const random = this.#random;
    let producer = incarnation.producers.find(() => random.chance(0.6));
    if (producer === undefined) {
      producer = {
        id: `producer ${incarnation.initial.id}/${incarnation.producers.length}`,
        epoch: 0,
        nextSeq: 0,
        unacked: [],
        lastAcked: null,
      };
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
    const { isImpatient } = this.#traits;
    if (waiting.length === 0 && producer.nextSeq > 0 && (random.chance(0.05) || (isImpatient && this.#whims.chance(0.15)))) {
      producer.epoch += 1;
      producer.nextSeq = 0;
    }
    const stamp = { id: producer.id, epoch: producer.epoch, seq: producer.nextSeq };
    producer.nextSeq += 1;
    const operation = this.#ledger.newOperation(name, {
      length: this.#length(),
      producer: stamp,
      closes: random.chance(0.01) || (isImpatient && this.#whims.chance(0.03)),
    });
    producer.unacked.push(operation);
    const sent = this.#send(process, name, operation, producer);
    if (!isImpatient || !this.#whims.chance(0.4)) return sent;
    for (let turns = this.#whims.integer(0, 3); turns > 0; turns -= 1) await turn();
    await Promise.all([sent, process.isAlive ? this.#send(process, name, operation, producer) : null]);
  }

  async #send(process: RunningProcess, name: Name, operation: Operation, producer: Producer | null = null): Promise<void> {
    const ledger = this.#ledger;
    const sent = ledger.sent(process, name, operation, producer);
    const { id, body, stored, closes, producer: stamp, seq } = operation;
    const contentType = body.length === 0 ? null : CONTENT_TYPES[name.kind];
    this.#trace?.(
      `append ${id} to ${name.name} (${stored.length} bytes, ${JSON.stringify({ closes, stamp, seq, isRetry: sent.isRetry })})`,
    );
    let outcome: AppendOutcome;
    try {
      outcome = await appendByName(process.registry, name.name, { contentType, body, closes, producer: stamp, seq, ifMatch: null });
    } catch (error) {
      if (process.isAlive) ledger.ended(process, name, operation, true);
      throw error;
    }
    if (!process.isAlive) return;
    this.#trace?.(`append ${id}: ${JSON.stringify(outcome)}`);
    ledger.ended(process, name, operation, outcome.kind === "refused" && outcome.code === "storage-unavailable");
    if (outcome.kind === "refused") ledger.appendRefused(process, name, operation, outcome, sent);
    else ledger.appended(process, name, operation, outcome, sent);
    this.#onAnswer(outcome.kind === "refused" || outcome.duplicate);
  }

  async #delete(process: RunningProcess, name: Name): Promise<void> {
    const sent = this.#ledger.deletionSent(name);
    this.#trace?.(`delete ${name.name}`);
    const outcome = await process.registry.delete(name.name);
    if (!process.isAlive) return;
    this.#trace?.(`deleted ${name.name}: ${JSON.stringify(outcome)}`);
    this.#ledger.deletionAnswered(process, sent, outcome);
    this.#onAnswer(outcome.kind === "refused");
  }

  /** Somebody drops the beginning of a stream, beside what retention does by itself. */
  async #trim(process: RunningProcess, name: Name): Promise<void> {
    const stream = await this.#find(process, name);
    if (stream === null) return;
    const incarnation = this.#ledger.incarnationOf(name, stream);
    if (stream.phase !== "live") return;
    const before = this.#random.integer(stream.stored.earliest, stream.tail);
    incarnation.droppableTo = Math.max(incarnation.droppableTo, before);
    this.#trace?.(`trim ${incarnation.tag} before ${before}`);
    trimBefore(process.storage, stream.stored, before);
  }

  /** Looks a stream up, and compares what is found with what can be. */
  async #find(process: RunningProcess, name: Name): Promise<Stream | null> {
    const ledger = this.#ledger;
    const ackedTails = new Map(ledger.alive(name).map((incarnation) => [incarnation, incarnation.ackedTail]));
    const asked = { since: ledger.tick(), askedMs: process.clock.nowMs(), ackedTails };
    const found = await process.registry.find(name.name);
    if (!process.isAlive) return null;
    if ("code" in found) {
      this.#trace?.(`find ${name.name}: ${found.code}`);
      // Whether it is there is not said.
      if (!isForLackOfMemory(found)) ledger.notFound(process, name, asked, found.code);
      return null;
    }
    const incarnation = ledger.found(process, name, found, asked);
    this.#trace?.(`find ${name.name}: ${incarnation.tag}, tail ${found.tail}`);
    return found;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
