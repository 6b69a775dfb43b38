import { stopwatchMs, type Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { Continuity } from "../log/continuity.js";
import { Fullness } from "../log/fullness.js";
import { SequenceAges } from "../log/sequence-ages.js";
import {
  LogUnavailableError,
  type LogHealth,
  type LogMessage,
  type OnUnavailable,
  type Published,
  type ReplicatedLog,
  type SubjectKind,
} from "../log/replicated-log.js";
import {
  API_ERROR,
  EXPECTED_HEADER,
  faultOfAnswer,
  HEAD_HEADER,
  jsonOf,
  majorityAgoMs,
  messageOfHeaders,
  sequenceIn,
  messageOfLeader,
  publishedOf,
  stateOf,
  type ApiAnswer,
} from "./answers.js";
import type { Bucket } from "./bucket.js";
import type { ClusterConnection } from "./connection.js";
import { headersOf } from "../client/header-block.js";
import { headsOf, type HeadsSource } from "./heads.js";
import type { NatsMessage } from "../client/nats-client.js";
import { publishInVain, Refusals, withAdvice } from "./permissions.js";
import type { Answer } from "./requests.js";
import { ShardHealth } from "./shard-health.js";

const ANSWER_TIMEOUT_MS = 2000;
/** How long a server that is not the leader is waited for. */
const DIRECT_TIMEOUT_MS = 1000;
/** How often a leader is asked of which it is not certain that it is one. */
const MAX_TRIES = 2;
/** Most messages of one read. */
const MAX_BATCH = 1000;
/** What a message may have beside its body: its head, and a first snapshot of producers. */
const HEAD_ROOM_BYTES = 64 * 1024;

const STATUS = { noMessage: 404, endOfBatch: 204 } as const;

/** A log on JetStream streams: one for each shard of a bucket, and one for touches. */
export class JetStreamLog implements ReplicatedLog {
  readonly #connection: ClusterConnection;
  readonly #bucket: Bucket;
  readonly #health: ShardHealth;
  readonly #healthOfTouches: ShardHealth;
  readonly #refusals: Refusals;
  readonly #fullness: Fullness;
  readonly #continuity: Continuity;
  readonly #ages: SequenceAges;
  readonly #source: HeadsSource;

  /**
   * `patienceMs` is how long a stream's next leader is waited for; `notices` is the server's log; `nowMs` tells the
   * time by a clock that never jumps.
   */
  constructor(
    connection: ClusterConnection,
    bucket: Bucket,
    clock: Clock,
    patienceMs: number,
    notices: Log,
    nowMs: () => number = stopwatchMs,
  ) {
    this.#connection = connection;
    this.#bucket = bucket;
    this.#refusals = new Refusals(nowMs);
    this.#fullness = new Fullness(notices, nowMs);
    this.#continuity = new Continuity(notices);
    this.#ages = new SequenceAges(nowMs);
    this.#source = {
      call: (call, query, consumer) => this.#call(call, query, consumer),
      unavailable: (stream, call, otherwise) => this.#unavailable(stream, call, otherwise),
      requests: connection.requests,
      clock,
    };
    const needed = new Set(bucket.shards.flatMap(neededFor));
    connection.onMoved = () => this.#refusals.moved((what) => needed.has(what));
    const watching = {
      clock,
      ask: (stream: string) => this.#majorityAgo(stream),
      connectionFault: () => connection.fault,
      refusalOf: (stream: string) => this.#refusals.whyOf(callOf.info(stream)),
      onLed: (stream: string, isLed: boolean) => {
        if (isLed) notices.info(`${stream} has a leader again`);
        else notices.error(`no leader answers for ${stream}`);
      },
      onMissing: (stream: string) =>
        notices.error(`the NATS servers have no ${stream}: restore it from a backup before any front end starts`),
      patienceMs,
      nowMs,
    };
    this.#health = new ShardHealth({
      ...watching,
      shards: bucket.shards,
      isRefused: (stream) =>
        connection.requests.deafness !== null || neededFor(stream).some((what) => this.#refusals.has(what)),
      onAllSilent: (isFirst) => void connection.leaveServer("silent", isFirst),
      onRefused: (isFirst) => connection.leaveServer("refusing", isFirst),
    });
    // Most of what front ends do goes on without it: no server is left for it.
    this.#healthOfTouches = new ShardHealth({
      ...watching,
      shards: [bucket.touches],
      isRefused: () => false,
      onAllSilent: () => {},
      onRefused: () => false,
    });
  }

  #healthOf(stream: string): ShardHealth {
    return stream === this.#bucket.touches ? this.#healthOfTouches : this.#health;
  }

  /** Less once the servers came back with a smaller limit: what is longer would be sent in vain. */
  get maxBodyBytes(): number {
    return this.#connection.maxPayloadBytes - HEAD_ROOM_BYTES;
  }

  /** The JetStream stream that has a subject. */
  #streamOf(subject: string): string {
    if (!subject.startsWith("sd.")) return this.#bucket.touches;
    const from = subject.indexOf(".", 3) + 1;
    return this.#bucket.shards[Number(subject.slice(from, subject.indexOf(".", from)))] ?? "";
  }

  publish(subject: string, head: string, body: Buffer, expected: number | null): Promise<Published> {
    const headed = [HEAD_HEADER, head] as const;
    const fields = expected === null ? [headed] : [[EXPECTED_HEADER, String(expected)] as const, headed];
    const sentAtMs = this.#health.nowMs;
    const stream = this.#streamOf(subject);
    return this.#connection.requests.askFor(subject, body, ANSWER_TIMEOUT_MS, fields, (answer) => {
      if (stream !== this.#bucket.touches) this.#learn(stream, subject, answer);
      if (answer.kind === "refused") return answer;
      if (answer.kind !== "reply") return { kind: answer.kind === "nobody" ? "untaken" : "unknown" };
      const published = publishedOf(answer.message);
      if (published.kind === "stored") this.#healthOf(stream).held(stream, sentAtMs);
      this.#fullness.published(stream, head.length + body.length, published.kind);
      return published;
    });
  }

  last(subject: string): Promise<LogMessage | null> {
    return this.#leaderMessage(this.#streamOf(subject), { last_by_subj: subject });
  }

  next(subject: string, sequence: number): Promise<LogMessage | null> {
    return this.#leaderMessage(this.#streamOf(subject), { seq: sequence, next_by_subj: subject });
  }

  async #leaderMessage(stream: string, query: object): Promise<LogMessage | null> {
    this.#mayBeLed(stream);
    const answer = await this.#askLeader(stream, callOf.read(stream), query);
    const fault = faultOfAnswer(answer);
    if (fault?.code === API_ERROR.noSuchMessage) return null;
    if (fault !== null) throw new LogUnavailableError(`${stream} can't be read: ${fault.description}`, stream);
    return messageOfLeader(answer);
  }

  /** Throws at once where nobody waits any more: each question would be two seconds of silence. */
  #mayBeLed(stream: string): void {
    if (this.#healthOf(stream).isGivenUp(stream))
      throw this.#unavailable(stream, callOf.info(stream), `${stream} has had no leader for long`);
  }

  /** Why a call has no answer that counts: `otherwise`, unless nobody can be asked or the user may not. */
  #unavailable(stream: string, call: string, otherwise: string): LogUnavailableError {
    return new LogUnavailableError(this.#connection.fault ?? this.#refusals.whyOf(call) ?? otherwise, stream);
  }

  /** What the answer to something that was published says of the right to do so. */
  #learn(what: string, subject: string, answer: Answer): void {
    // Who may have no answers at all, or has no server, knows nothing of what else is refused.
    if (answer.kind !== "reply" && this.#connection.fault !== null) return;
    if (answer.kind === "refused") this.#refusals.add(what, withAdvice(answer.why));
    // A server refuses at once: silence says that it did not.
    else if (this.#refusals.end(what)) this.#connection.allowed("publish", subject);
  }

  /**
   * What the leader of a stream answers to a call of the API, of one `consumer` maybe; `null` where it does not, at
   * once where the call was refused just now.
   */
  async #call(call: string, query: object, consumer: string | null = null): Promise<ApiAnswer | null> {
    if (this.#refusals.isFresh(call)) return null;
    const { requests } = this.#connection;
    const subject = `$JS.API.${call}${consumer === null ? "" : `.${consumer}`}`;
    const answer = await requests.ask(subject, JSON.stringify(query), ANSWER_TIMEOUT_MS);
    this.#learn(call, subject, answer);
    return answer.kind === "reply" ? jsonOf(answer.message) : null;
  }

  /**
   * What is answered by who certainly leads a stream: one that was cut off may have missed messages. What is known only
   * since the question went out may be of another than who answers it: then it is asked again.
   */
  async #askLeader(stream: string, call: string, query: object): Promise<ApiAnswer> {
    const health = this.#healthOf(stream);
    for (let tries = 1; ; tries += 1) {
      const wasKnown = health.isLedAt(stream, health.nowMs);
      const answer = await this.#call(call, query);
      if (answer === null) throw this.#unavailable(stream, call, noLeaderOf(stream));
      const { nowMs } = health;
      if (wasKnown && health.isLedAt(stream, nowMs)) return answer;
      if (tries === MAX_TRIES || !(await health.wasLed(stream, nowMs)))
        throw this.#unavailable(stream, callOf.info(stream), `${stream} may have another leader`);
    }
  }

  async #majorityAgo(stream: string): Promise<number | "missing" | null> {
    if (this.#refusals.has(stream) && !this.#refusals.isFresh(stream)) await this.#mayWriteAgain(stream);
    const read = callOf.read(stream);
    // No message has this subject: an answer says that the user may read again.
    if (this.#refusals.has(read)) await this.#call(read, { last_by_subj: "none" });
    const shard = this.#bucket.shards.indexOf(stream);
    const query = shard < 0 ? {} : { subjects_filter: this.#bucket.subjects.ofReserve(shard) };
    const answer = await this.#call(callOf.info(stream), query);
    if (answer === null) return null;
    if (faultOfAnswer(answer)?.code === API_ERROR.noSuchStream) return "missing";
    const state = stateOf(answer);
    if (state !== null) {
      this.#continuity.saw(stream, state);
      this.#ages.saw(stream, state);
    }
    return majorityAgoMs(answer, this.#bucket.replicas);
  }

  async #mayWriteAgain(stream: string): Promise<void> {
    const subject = this.#bucket.subjects.ofReserve(this.#bucket.shards.indexOf(stream));
    this.#learn(stream, subject, await publishInVain(this.#connection.requests, subject));
  }

  async find(subject: string, sequence: number): Promise<LogMessage | null> {
    const stream = this.#streamOf(subject);
    const query = JSON.stringify({ seq: sequence, next_by_subj: subject });
    const answer = await this.#connection.requests.ask(`$JS.API.DIRECT.GET.${stream}`, query, DIRECT_TIMEOUT_MS);
    const found = answer.kind === "reply" ? messageOfHeaders(answer.message) : null;
    // A server that has none may be behind.
    return found ?? this.next(subject, sequence);
  }

  async range(subject: string, sequence: number, maxBytes: number): Promise<readonly LogMessage[]> {
    const query = { seq: sequence, next_by_subj: subject, batch: MAX_BATCH, max_bytes: Math.max(1, maxBytes) };
    const call = `$JS.API.DIRECT.GET.${this.#streamOf(subject)}`;
    const { requests } = this.#connection;
    const answers = await requests.gather(call, JSON.stringify(query), DIRECT_TIMEOUT_MS, isLastOfBatch);
    const found = answers.flatMap((message) => messageOfHeaders(message) ?? []);
    if (found.length > 0) return found;
    const next = await this.next(subject, sequence);
    return next === null ? [] : [next];
  }

  async count(filter: string): Promise<number> {
    // Nearly always there is none, and that is quickly said.
    if ((await this.next(filter, 1)) === null) return 0;
    const stream = this.#streamOf(filter);
    const answer = await this.#askLeader(stream, callOf.info(stream), { subjects_filter: filter });
    const state = answer["state"];
    const count: unknown = typeof state === "object" && state !== null ? Reflect.get(state, "num_subjects") : undefined;
    const found: unknown = typeof state === "object" && state !== null ? Reflect.get(state, "subjects") : undefined;
    if (typeof found === "object" && found !== null) return Object.keys(found).length;
    if (typeof count === "number") return count;
    throw new LogUnavailableError(`${stream} can't be counted: ${faultOfAnswer(answer)?.description ?? ""}`, stream);
  }

  /** Parts are JetStream streams. */
  untilLed(part: string): Promise<boolean> {
    return this.#healthOf(part).untilLed(part);
  }

  hasSettled(subject: string, sequence: number): boolean {
    return this.#ages.hasSettled(this.#streamOf(subject), sequence);
  }

  async purge(subject: string, sequence: number | null): Promise<void> {
    const stream = this.#streamOf(subject);
    const range = sequence === null ? { filter: subject } : { filter: subject, seq: sequence };
    const call = `STREAM.PURGE.${stream}`;
    const answer = await this.#call(call, range);
    if (answer === null) throw this.#unavailable(stream, call, noLeaderOf(stream));
    const fault = faultOfAnswer(answer);
    if (fault !== null) throw new LogUnavailableError(`${stream} can't be purged: ${fault.description}`, stream);
  }

  async *heads(of: SubjectKind, onUnavailable?: OnUnavailable): AsyncGenerator<Omit<LogMessage, "body">> {
    for (const [shard, stream] of this.#bucket.shards.entries())
      try {
        this.#mayBeLed(stream);
        yield* headsOf(this.#source, stream, this.#bucket.subjects.ofAllIn(shard, of));
      } catch (fault) {
        if (onUnavailable === undefined || !(fault instanceof LogUnavailableError)) throw fault;
        onUnavailable(fault);
      }
  }

  watch(subject: string, isNews: (sequence: number) => boolean, onMessage: (message: LogMessage) => void): () => void {
    return this.#connection.subscribe(this.#bucket.subjects.republished(subject), (message) => {
      const headers = headersOf(message);
      const told = isNews(sequenceIn(headers)) ? messageOfHeaders(message, headers) : null;
      if (told !== null) onMessage(told);
    });
  }

  announce(text: string): void {
    this.#connection.tell(this.#bucket.subjects.ofAnnouncements, text);
  }

  listen(onAnnounced: (text: string) => void, onGap: () => void): void {
    this.#connection.onGap = () => {
      this.#ages.forget();
      onGap();
    };
    this.#connection.subscribe(this.#bucket.subjects.ofAnnouncements, ({ data }) =>
      onAnnounced(Buffer.from(data).toString()),
    );
    // What a new leader took over before it led is not republished.
    for (const shard of this.#bucket.shards)
      this.#connection.subscribe(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${shard}`, () => {
        this.#ages.forget(shard);
        onGap();
      });
  }

  health(): LogHealth {
    const { writable, reason } = this.#health.health;
    const needed = this.#bucket.shards.flatMap((shard) => [shard, callOf.read(shard)]);
    const [refusal = null] = needed.flatMap((what) => this.#refusals.whyOf(what) ?? []);
    const why = reason ?? refusal ?? this.#healthOfTouches.health.reason;
    return { writable: writable && refusal === null, reason: why };
  }

  close(): Promise<void> {
    this.#health.stop();
    this.#healthOfTouches.stop();
    return this.#connection.close();
  }
}

/** Calls of the API without which a shard can't be used. */
const callOf = {
  info: (stream: string): string => `STREAM.INFO.${stream}`,
  read: (stream: string): string => `STREAM.MSG.GET.${stream}`,
};

/** What may be refused for a shard that can't be used without it; each is asked for again while it is refused. */
function neededFor(shard: string): readonly string[] {
  return [shard, callOf.info(shard), callOf.read(shard)];
}

function noLeaderOf(stream: string): string {
  return `no leader answers for ${stream}`;
}

/** A batch ends with a message of the server's own: an empty body is a message like any other. */
function isLastOfBatch({ headers }: NatsMessage): boolean {
  return headers === undefined || headers.code === STATUS.endOfBatch || headers.code >= STATUS.noMessage;
}
