import { MAX_ROUND_MS, type Operation, type Producer } from "./operations.js";

/** What must not happen has happened. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** Throws a {@link Violation} unless `holds`. */
export function must(holds: boolean, says: () => string): asserts holds {
  if (!holds) throw new Violation(says());
}

/** One creation of a name, and what is known of the stream that it made. */
export class Incarnation {
  readonly tag: string;
  readonly name: string;
  readonly initial: Operation;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  readonly isJson: boolean;
  readonly invokedAt: number;
  /** When the creation was answered or cut off. */
  endedAt = Infinity;
  acked = false;
  /** Certainly gone, for ever; or never there. */
  dead = false;
  /** Deletions that may have happened or may yet. */
  readonly openDeletes = new Set<number>();
  lastDeleteAt = -1;
  id: string | null = null;
  /** The bytes from the start on that a reader saw. */
  seen: Buffer = Buffer.alloc(0);
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
  readonly operations: Operation[] = [];
  readonly producers: Producer[] = [];

  constructor(initial: Operation, config: { tag: string; ttlSeconds: number | null; expiresAtMs: number | null; isJson: boolean }, nowMs: number) {
    this.initial = initial;
    this.tag = config.tag;
    this.name = initial.name;
    this.ttlSeconds = config.ttlSeconds;
    this.expiresAtMs = config.expiresAtMs;
    this.isJson = config.isJson;
    this.invokedAt = initial.invokedAt;
    this.touchedMs = nowMs;
    this.durablyTouchedMs = nowMs;
    this.maybeTouchedMs = nowMs;
  }

  /** Until when it is certainly not expired. */
  get earliestDeadlineMs(): number {
    return this.expiresAtMs ?? (this.ttlSeconds === null ? Infinity : this.touchedMs + this.ttlSeconds * 1000);
  }

  /** From when it certainly is. */
  get latestDeadlineMs(): number {
    return this.expiresAtMs ?? (this.ttlSeconds === null ? Infinity : this.maybeTouchedMs + this.ttlSeconds * 1000 + MAX_ROUND_MS);
  }

  /** Whether it was there, beyond doubt, all the time from tick `since` until now. */
  wasThereSince(since: number, nowMs: number): boolean {
    const created = this.acked && this.endedAt < since;
    return created && !this.dead && this.openDeletes.size === 0 && this.lastDeleteAt < since && nowMs < this.earliestDeadlineMs;
  }

  /** Compares `bytes` from position `from` on with what readers saw, and remembers them. */
  observe(from: number, bytes: Buffer): void {
    must(from <= this.seen.length, () => `a test read ${this.tag} from ${from}, past what was seen`);
    const known = this.seen.subarray(from, from + bytes.length);
    must(bytes.subarray(0, known.length).equals(known), () => `${this.tag}: bytes at ${from} changed: ${excerpt(known)} became ${excerpt(bytes)}`);
    if (from + bytes.length > this.seen.length) this.seen = Buffer.concat([this.seen.subarray(0, from), bytes]);
  }

  /** A position has one token for ever. */
  observeToken(position: number, token: string): void {
    const known = this.tokens.get(position);
    must(known === undefined || known === token, () => `${this.tag}: position ${position} was ${known}, is now ${token}`);
    this.tokens.set(position, token);
  }

  observeClosed(at: number): void {
    must(this.closedAt === null || this.closedAt === at, () => `${this.tag} was closed at ${this.closedAt}, is now at ${at}`);
    this.closedAt = at;
  }

  observeId(id: string, ids: Map<string, string>): void {
    must(this.id === null || this.id === id, () => `${this.tag} had the id ${this.id}, now has ${id}`);
    const owner = ids.get(id);
    must(owner === undefined || owner === this.tag, () => `${this.tag} has the id of ${owner}`);
    this.id = id;
    ids.set(id, this.tag);
  }

  /** Checks a whole stream, read while nothing else went on: `find` knows every operation by its number. */
  checkWhole(content: Buffer, find: (id: number) => Operation | undefined): void {
    const present = new Map<Operation, number>();
    let latestInvoked = -1;
    for (let at = 0; at < content.length; ) {
      const operation = find(idAt(content, at));
      must(operation !== undefined, () => `${this.tag}: nobody wrote what is at ${at}: ${excerpt(content.subarray(at))}`);
      const { stored } = operation;
      must(content.subarray(at, at + stored.length).equals(stored), () => `${this.tag}: operation ${operation.id} is not whole at ${at}`);
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
      const isMissing = operation.acked && operation.stored.length > 0 && !present.has(operation);
      must(!isMissing, () => `${this.tag}: operation ${operation.id}, acknowledged at ${operation.from}, is lost (the stream ends at ${content.length})`);
    }
    must(this.seen.length <= content.length, () => `${this.tag}: a reader saw ${this.seen.length} bytes, ${content.length} are left`);
    this.observe(0, content);
  }

  /** What is there stays there, and what is not never will be: nothing is under way. */
  #settle(present: ReadonlyMap<Operation, number>): void {
    for (const [operation, at] of present) {
      if (!this.operations.includes(operation)) this.operations.push(operation);
      operation.inside = this;
      operation.acked = true;
      operation.from = at;
    }
    const seqs = [...present.keys()].map(({ seq }) => seq).filter((seq) => seq !== null);
    this.lastSeq = seqs.at(-1) ?? null;
  }
}

function idAt(content: Buffer, at: number): number {
  const mark = content.indexOf("#", at);
  return mark === -1 || mark > at + 12 ? -1 : Number(content.toString("latin1", mark + 1, mark + 9));
}

function excerpt(bytes: Buffer): string {
  return JSON.stringify(bytes.toString("latin1", 0, 60));
}
