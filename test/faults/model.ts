import type { ForkOrigin } from "../../src/storage/storage.js";
import { TOUCH_INTERVAL_MS, type TtlMode } from "../../src/stream/rules/expiry.js";
import { Citations } from "./citations.js";
import { MAX_ROUND_MS, type Operation, type Producer } from "./operations.js";

/** What must not happen has happened. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** Throws a {@link Violation} unless `holds`. */
export function must(holds: boolean, says: () => string): asserts holds {
  if (!holds) throw new Violation(says());
}

/** What a creation asks for. */
export interface IncarnationConfig {
  /** The content type, which no other creation has. */
  readonly tag: string;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  readonly ttlMode: TtlMode;
}

/** How long a stream lives. */
export type Lifetime = Pick<IncarnationConfig, "ttlSeconds" | "expiresAtMs">;

/** Where a fork comes from. */
export interface Origin {
  /** The source's name. */
  readonly name: string;
  /** The place that was asked for; `null` for the source's tail. */
  readonly from: number | null;
  readonly subOffset: number;
  /** The source's end when the fork was asked for. */
  readonly tail: number;
  readonly expected: Incarnation;
  /** Whether the lifetime is the source's. */
  readonly inherits: boolean;
  /** The stream that it was forked from, and where; `null` until that is known. */
  source: Incarnation | null;
  point: number | null;
}

/** One creation of a name, and what is known of the stream that it made. */
export class Incarnation {
  readonly tag: string;
  readonly name: string;
  readonly initial: Operation;
  readonly config: IncarnationConfig;
  readonly origin: Origin | null;
  readonly invokedAt: number;
  readonly #invokedMs: number;
  /** When the creation was answered or cut off. */
  endedAt = Infinity;
  acked = false;
  /** Certainly gone, for ever; or never there. */
  dead = false;
  /** When its deletion was acknowledged, or its creation refused. */
  releasedAt = Infinity;
  /** Deletions that may have happened or may yet. */
  readonly openDeletes = new Set<number>();
  /** Reads that wait for their answer: it may count from any moment of that. */
  readsUnderWay = 0;
  lastDeleteAt = -1;
  id: string | null = null;
  /** When it was created, once that is known. */
  #createdMs: number | null = null;
  /** Where the earliest byte is that is kept. */
  earliest = 0;
  /** Somebody asked for what is before it to be dropped. */
  droppableTo = 0;
  /** The bytes from there on that a reader saw. */
  #seen: Buffer = Buffer.alloc(0);
  readonly tokens = new Map<number, string>();
  /** Known to be closed at this position, durably. */
  closedAt: number | null = null;
  /** The highest `Stream-Seq` acknowledged. */
  lastSeq: string | null = null;
  /** What it was said to have. */
  readonly cited = new Citations();
  /** The end of the last acknowledged append. */
  ackedTail = 0;
  /** The last access that a crash does not take back. */
  durablyTouchedMs: number;
  /** The earliest and the latest last access that there can have been, in milliseconds since 1970. */
  touchedMs: number;
  maybeTouchedMs: number;
  /** The last answer to an access: it counts from then in memory, and only there. */
  answeredMs = -Infinity;
  /** Those of the same name that may have been there when its creation was sent. */
  readonly rivals: readonly Incarnation[];
  readonly operations: Operation[] = [];
  readonly producers: Producer[] = [];

  constructor(initial: Operation, config: IncarnationConfig, nowMs: number, rivals: readonly Incarnation[], origin: Origin | null = null) {
    this.rivals = rivals;
    this.initial = initial;
    this.origin = origin;
    this.config = config;
    this.tag = config.tag;
    this.name = initial.name;
    this.invokedAt = initial.invokedAt;
    this.#invokedMs = nowMs;
    this.touchedMs = nowMs;
    this.durablyTouchedMs = nowMs;
    this.maybeTouchedMs = nowMs;
  }

  /** Where its own bytes begin. */
  get point(): number {
    return this.origin === null ? 0 : (this.origin.point ?? Infinity);
  }

  /** As it was asked for; that of the source where a fork asked for none, `null` until that is known. */
  get lifetime(): Lifetime | null {
    return this.origin?.inherits === true ? (this.origin.source?.lifetime ?? null) : this.config;
  }

  /** It was there at tick `tick`, durably. */
  seen(tick: number): void {
    this.acked = true;
    this.endedAt = Math.min(this.endedAt, tick);
  }

  /** Until when it is certainly not expired. */
  get earliestDeadlineMs(): number {
    if (this.lifetime === null) return -Infinity;
    return this.#deadlineMs(this.lifetime, this.#createdMs ?? this.#invokedMs, Math.max(this.touchedMs, this.answeredMs), 0);
  }

  /** From when it certainly is. */
  get latestDeadlineMs(): number {
    if (this.lifetime === null) return Infinity;
    // Until it is known when it was created, it may have been as late as somebody may have touched it first.
    const touchedMs = this.readsUnderWay > 0 ? Infinity : this.maybeTouchedMs;
    return this.#deadlineMs(this.lifetime, this.#createdMs ?? touchedMs, touchedMs, MAX_ROUND_MS);
  }

  #deadlineMs({ expiresAtMs, ttlSeconds }: Lifetime, createdMs: number, touchedMs: number, roundMs: number): number {
    const { ttlMode } = this.config;
    if (expiresAtMs !== null) return expiresAtMs;
    if (ttlSeconds === null) return Infinity;
    return (ttlMode === "fixed" ? createdMs : touchedMs + roundMs) + ttlSeconds * 1000;
  }

  /** An append was taken. From disk the stream comes with a little more time than that. */
  appendAnswered(sentMs: number, nowMs: number): void {
    const keptFromMs = Math.min(nowMs, sentMs + TOUCH_INTERVAL_MS);
    this.answeredMs = nowMs;
    this.touchedMs = Math.max(this.touchedMs, keptFromMs);
    this.durablyTouchedMs = Math.max(this.durablyTouchedMs, keptFromMs);
  }

  /** The process is gone: what was under way may have been taken at the last moment. */
  crashed(tick: number, nowMs: number): void {
    this.readsUnderWay = 0;
    if (this.endedAt === Infinity) this.endedAt = tick;
    this.touchedMs = this.durablyTouchedMs;
    this.answeredMs = -Infinity;
    this.maybeTouchedMs = Math.max(this.maybeTouchedMs, this.dead ? 0 : nowMs);
  }

  /** Everything is permanent, notes of reads too, where there was room for them. */
  closedCleanly(hadRoom: boolean): void {
    if (hadRoom) this.durablyTouchedMs = this.touchedMs;
    this.answeredMs = -Infinity;
  }

  /** The end of what readers saw. */
  get seenTo(): number {
    return this.earliest + this.#seen.length;
  }

  /** Whether it was there, beyond doubt, all the time from tick `since` until now. */
  wasThereSince(since: number, nowMs: number): boolean {
    const created = this.acked && this.endedAt < since;
    return created && !this.dead && this.openDeletes.size === 0 && this.lastDeleteAt < since && nowMs < this.earliestDeadlineMs;
  }

  /** Compares `bytes` from position `from` on with what readers saw, and remembers them. */
  observe(from: number, bytes: Buffer): void {
    const offset = from - this.earliest;
    // The reader began before the stream's beginning was taken away.
    if (offset < 0) return this.observe(this.earliest, bytes.subarray(Math.min(-offset, bytes.length)));
    must(offset <= this.#seen.length, () => `a test read ${this.tag} from ${from}, past what was seen`);
    const known = this.#seen.subarray(offset, offset + bytes.length);
    must(
      bytes.subarray(0, known.length).equals(known),
      () => `${this.tag}: bytes at ${from} changed: ${excerpt(known)} became ${excerpt(bytes)}`,
    );
    if (offset + bytes.length > this.#seen.length) this.#seen = Buffer.concat([this.#seen.subarray(0, offset), bytes]);
    // What a fork shares is its source's, as it was.
    const source = this.origin?.source ?? null;
    if (source !== null && from < this.point && from <= source.seenTo) source.observe(from, bytes.subarray(0, this.point - from));
  }

  /** The bytes before `earliest` are gone for ever; those from there on are not. */
  observeEarliest(earliest: number): void {
    must(earliest >= this.earliest, () => `${this.tag} began at ${this.earliest}, now begins at ${earliest}`);
    if (earliest === this.earliest) return;
    this.#seen = this.#seen.subarray(Math.min(earliest - this.earliest, this.#seen.length));
    this.earliest = earliest;
  }

  /** What a fork says of where it comes from. */
  observeOrigin(forkedFrom: ForkOrigin | null, source: Incarnation | null): void {
    const { origin, tag } = this;
    must(
      (origin === null) === (forkedFrom === null) && origin?.name === forkedFrom?.name,
      () => `${tag} says that it was forked from ${forkedFrom?.name}`,
    );
    if (origin === null || forkedFrom === null) return;
    must(
      origin.point === null || origin.point === forkedFrom.point,
      () => `${tag} was forked at ${origin.point}, now at ${forkedFrom.point}`,
    );
    must(origin.source === null || origin.source === source, () => `${tag} was forked from ${origin.source?.tag}, now from ${source?.tag}`);
    origin.point = forkedFrom.point;
    this.droppableTo = Math.max(this.droppableTo, forkedFrom.earliest.position);
    if (origin.source !== null || source === null) return;
    origin.source = source;
    must(source.acked || !source.initial.refused, () => `${tag} was forked from ${source.tag}, which never was`);
    // It was there to be forked.
    source.acked = true;
  }

  /** Whose bytes are at a position, and up to where they are; `null` where that is not known. */
  ownerAt(at: number): { readonly owner: Incarnation | null; readonly limit: number } {
    if (at >= this.point) return { owner: this, limit: Infinity };
    const { owner, limit } = this.origin?.source?.ownerAt(at) ?? { owner: null, limit: Infinity };
    return { owner, limit: Math.min(limit, this.point) };
  }

  /** What was asked for stays, and so does the time of the creation. */
  observeConfig(
    { ttlSeconds, expiresAtMs, createdAtMs }: Pick<IncarnationConfig, "ttlSeconds" | "expiresAtMs"> & { readonly createdAtMs: number },
    nowMs: number,
  ): void {
    const { lifetime } = this;
    must(
      lifetime === null || (ttlSeconds === lifetime.ttlSeconds && expiresAtMs === lifetime.expiresAtMs),
      () => `${this.tag}: its lifetime changed to ${ttlSeconds} s, ${expiresAtMs}`,
    );
    must(createdAtMs === (this.#createdMs ?? createdAtMs), () => `${this.tag} was created at ${this.#createdMs}, now at ${createdAtMs}`);
    must(
      createdAtMs >= this.#invokedMs && createdAtMs <= nowMs,
      () => `${this.tag} was created at ${createdAtMs}, outside of ${this.#invokedMs}..${nowMs}`,
    );
    this.#createdMs = createdAtMs;
    this.maybeTouchedMs = Math.max(this.maybeTouchedMs, createdAtMs);
  }

  /** A position has one token for ever. */
  observeToken(position: number, token: string): void {
    // Where nothing is kept a token means nothing any more.
    if (position < this.earliest) return;
    const known = this.tokens.get(position);
    must(known === undefined || known === token, () => `${this.tag}: position ${position} was ${known}, is now ${token}`);
    this.tokens.set(position, token);
  }

  observeClosed(at: number): void {
    must(this.closedAt === null || this.closedAt === at, () => `${this.tag} was closed at ${this.closedAt}, is now at ${at}`);
    this.closedAt = at;
  }

  /** Checks a whole stream, read from `earliest` on while nothing else went on: `find` knows every operation by its number. */
  checkWhole(content: Buffer, find: (id: number) => Operation | undefined): void {
    const present = new Map<Operation, number>();
    const own = new Map<Operation, number>();
    const end = this.earliest + content.length;
    let latestInvoked = -1;
    for (let at = this.earliest; at < end;) {
      const rest = content.subarray(at - this.earliest);
      const { owner, limit } = this.ownerAt(at);
      const length = Math.min(rest.length, limit - at);
      const operation = find(idAt(rest.subarray(0, length)));
      // Nobody knows whose it is: the source is not known, or the fork point cuts off the mark.
      if (owner === null || limit - at < MARK_BYTES) {
        at = limit;
        continue;
      }
      must(operation !== undefined, () => `${this.tag}: nobody wrote what is at ${at}: ${excerpt(rest)}`);
      const { stored } = operation;
      must(
        rest.subarray(0, Math.min(stored.length, limit - at)).equals(stored.subarray(0, limit - at)),
        () => `${this.tag}: operation ${operation.id} is not whole at ${at}`,
      );
      must(operation.name === owner.name, () => `${this.tag}: operation ${operation.id} was for ${operation.name}`);
      must(
        operation.inside === null || operation.inside === owner,
        () => `${this.tag}: operation ${operation.id} was for ${operation.inside?.tag}`,
      );
      must(!present.has(operation), () => `${this.tag}: operation ${operation.id} is there twice, at ${present.get(operation)} and ${at}`);
      must(!operation.refused, () => `${this.tag}: operation ${operation.id} was refused, but is there at ${at}`);
      must(
        operation.from === null || operation.from === at,
        () => `${this.tag}: operation ${operation.id} was acknowledged at ${operation.from}, is at ${at}`,
      );
      must(operation.endedAt >= latestInvoked, () => `${this.tag}: operation ${operation.id} at ${at} comes after a later one`);
      latestInvoked = Math.max(latestInvoked, operation.invokedAt);
      present.set(operation, at);
      if (owner === this) own.set(operation, at);
      else owner.#hold(operation, at);
      at += Math.min(stored.length, limit - at);
    }
    this.#settle(own);
    this.origin?.source?.checkShared(present, this);
    for (const operation of this.operations) {
      const isKept = operation.from === null ? this.earliest <= this.point : operation.from >= this.earliest;
      const isMissing = operation.acked && operation.stored.length > 0 && isKept && !present.has(operation);
      must(
        !isMissing,
        () => `${this.tag}: operation ${operation.id}, acknowledged at ${operation.from}, is lost (the stream ends at ${end})`,
      );
    }
    must(this.seenTo <= end, () => `${this.tag}: a reader saw ${this.seenTo} bytes, ${end} are left`);
    this.observe(this.earliest, content);
  }

  /** What is there stays there, and what is not never will be: nothing is under way. */
  #settle(present: ReadonlyMap<Operation, number>): void {
    for (const [operation, at] of present) this.#hold(operation, at);
    const last = [...present.keys()].findLast(({ seq }) => seq !== null);
    if (last !== undefined || this.earliest <= this.point) this.lastSeq = last?.seq ?? null;
  }

  #hold(operation: Operation, at: number): void {
    if (!this.operations.includes(operation)) this.operations.push(operation);
    operation.inside = this;
    operation.acked = true;
    operation.from = at;
  }

  /** A fork has every acknowledged append before its point that was not dropped; `present` is what it has. */
  checkShared(present: ReadonlyMap<Operation, number>, fork: Incarnation, limit = fork.point): void {
    for (const { id, acked, from, stored } of this.operations.filter((operation) => !present.has(operation))) {
      const isShared = acked && from !== null && from >= fork.earliest && from >= this.point && from + MARK_BYTES <= limit;
      must(
        !isShared || stored.length === 0,
        () => `${fork.tag}: operation ${id}, acknowledged at ${from} of ${this.tag}, is not shared up to ${limit}`,
      );
    }
    this.origin?.source?.checkShared(present, fork, Math.min(limit, this.point));
  }
}

/** So many bytes of an append say whose it is. */
const MARK_BYTES = 16;

/** Whose bytes these are, as their first ones say. */
function idAt(content: Buffer): number {
  const mark = content.subarray(0, 13).indexOf("#");
  return mark === -1 ? -1 : Number(content.toString("latin1", mark + 1, mark + 9));
}

function excerpt(bytes: Buffer): string {
  return JSON.stringify(bytes.toString("latin1", 0, 60));
}
