import type { TtlMode } from "../../src/stream/expiry.js";
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

/** One creation of a name, and what is known of the stream that it made. */
export class Incarnation {
  readonly tag: string;
  readonly name: string;
  readonly initial: Operation;
  readonly config: IncarnationConfig;
  readonly invokedAt: number;
  readonly #invokedMs: number;
  /** When the creation was answered or cut off. */
  endedAt = Infinity;
  acked = false;
  /** Certainly gone, for ever; or never there. */
  dead = false;
  /** Deletions that may have happened or may yet. */
  readonly openDeletes = new Set<number>();
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
  /** The end of the last acknowledged append. */
  ackedTail = 0;
  /** The last access that a crash does not take back. */
  durablyTouchedMs: number;
  /** The earliest and the latest last access that there can have been, in milliseconds since 1970. */
  touchedMs: number;
  maybeTouchedMs: number;
  /** Those of the same name that may have been there when its creation was sent. */
  readonly rivals: readonly Incarnation[];
  readonly operations: Operation[] = [];
  readonly producers: Producer[] = [];

  constructor(initial: Operation, config: IncarnationConfig, nowMs: number, rivals: readonly Incarnation[]) {
    this.rivals = rivals;
    this.initial = initial;
    this.config = config;
    this.tag = config.tag;
    this.name = initial.name;
    this.invokedAt = initial.invokedAt;
    this.#invokedMs = nowMs;
    this.touchedMs = nowMs;
    this.durablyTouchedMs = nowMs;
    this.maybeTouchedMs = nowMs;
  }

  /** Until when it is certainly not expired. */
  get earliestDeadlineMs(): number {
    return this.#deadlineMs(this.#createdMs ?? this.#invokedMs, this.touchedMs, 0);
  }

  /** From when it certainly is. */
  get latestDeadlineMs(): number {
    // Until it is known when it was created, it may have been as late as somebody may have touched it first.
    return this.#deadlineMs(this.#createdMs ?? this.maybeTouchedMs, this.maybeTouchedMs, MAX_ROUND_MS);
  }

  #deadlineMs(createdMs: number, touchedMs: number, roundMs: number): number {
    const { expiresAtMs, ttlSeconds, ttlMode } = this.config;
    if (expiresAtMs !== null) return expiresAtMs;
    if (ttlSeconds === null) return Infinity;
    return (ttlMode === "fixed" ? createdMs : touchedMs + roundMs) + ttlSeconds * 1000;
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
    must(bytes.subarray(0, known.length).equals(known), () => `${this.tag}: bytes at ${from} changed: ${excerpt(known)} became ${excerpt(bytes)}`);
    if (offset + bytes.length > this.#seen.length) this.#seen = Buffer.concat([this.#seen.subarray(0, offset), bytes]);
  }

  /** The bytes before `earliest` are gone for ever; those from there on are not. */
  observeEarliest(earliest: number): void {
    must(earliest >= this.earliest, () => `${this.tag} began at ${this.earliest}, now begins at ${earliest}`);
    if (earliest === this.earliest) return;
    this.#seen = this.#seen.subarray(Math.min(earliest - this.earliest, this.#seen.length));
    this.earliest = earliest;
  }

  /** What was asked for stays, and so does the time of the creation. */
  observeConfig({ ttlSeconds, expiresAtMs, createdAtMs }: Pick<IncarnationConfig, "ttlSeconds" | "expiresAtMs"> & { readonly createdAtMs: number }, nowMs: number): void {
    const { config } = this;
    must(ttlSeconds === config.ttlSeconds && expiresAtMs === config.expiresAtMs, () => `${this.tag}: its lifetime changed to ${ttlSeconds} s, ${expiresAtMs}`);
    must(createdAtMs === (this.#createdMs ?? createdAtMs), () => `${this.tag} was created at ${this.#createdMs}, now at ${createdAtMs}`);
    must(createdAtMs >= this.#invokedMs && createdAtMs <= nowMs, () => `${this.tag} was created at ${createdAtMs}, outside of ${this.#invokedMs}..${nowMs}`);
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
    const end = this.earliest + content.length;
    let latestInvoked = -1;
    for (let at = this.earliest; at < end; ) {
      const rest = content.subarray(at - this.earliest);
      const operation = find(idAt(rest));
      must(operation !== undefined, () => `${this.tag}: nobody wrote what is at ${at}: ${excerpt(rest)}`);
      const { stored } = operation;
      must(rest.subarray(0, stored.length).equals(stored), () => `${this.tag}: operation ${operation.id} is not whole at ${at}`);
      must(operation.name === this.name, () => `${this.tag}: operation ${operation.id} was for ${operation.name}`);
      must(operation.inside === null || operation.inside === this, () => `${this.tag}: operation ${operation.id} was for ${operation.inside?.tag}`);
      must(!present.has(operation), () => `${this.tag}: operation ${operation.id} is there twice, at ${present.get(operation)} and ${at}`);
      must(!operation.refused, () => `${this.tag}: operation ${operation.id} was refused, but is there at ${at}`);
      must(operation.from === null || operation.from === at, () => `${this.tag}: operation ${operation.id} was acknowledged at ${operation.from}, is at ${at}`);
      must(operation.endedAt >= latestInvoked, () => `${this.tag}: operation ${operation.id} at ${at} comes after a later one`);
      latestInvoked = Math.max(latestInvoked, operation.invokedAt);
      present.set(operation, at);
      at += stored.length;
    }
    this.#settle(present);
    for (const operation of this.operations) {
      const isKept = operation.from === null ? this.earliest === 0 : operation.from >= this.earliest;
      const isMissing = operation.acked && operation.stored.length > 0 && isKept && !present.has(operation);
      must(!isMissing, () => `${this.tag}: operation ${operation.id}, acknowledged at ${operation.from}, is lost (the stream ends at ${end})`);
    }
    must(this.seenTo <= end, () => `${this.tag}: a reader saw ${this.seenTo} bytes, ${end} are left`);
    this.observe(this.earliest, content);
  }

  /** What is there stays there, and what is not never will be: nothing is under way. */
  #settle(present: ReadonlyMap<Operation, number>): void {
    for (const [operation, at] of present) {
      if (!this.operations.includes(operation)) this.operations.push(operation);
      operation.inside = this;
      operation.acked = true;
      operation.from = at;
    }
    const last = [...present.keys()].findLast(({ seq }) => seq !== null);
    if (last !== undefined || this.earliest === 0) this.lastSeq = last?.seq ?? null;
  }
}

/** Whose bytes these are, as their first ones say. */
function idAt(content: Buffer): number {
  const mark = content.subarray(0, 13).indexOf("#");
  return mark === -1 ? -1 : Number(content.toString("latin1", mark + 1, mark + 9));
}

function excerpt(bytes: Buffer): string {
  return JSON.stringify(bytes.toString("latin1", 0, 60));
}
