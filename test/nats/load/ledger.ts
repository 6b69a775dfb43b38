// What the clients of a load were told, and what they saw that can't be.

const MAX_VIOLATIONS = 20;

/** The figures of a load. */
export interface LoadFigures {
  readonly acked: number;
  readonly retries: ReadonlyMap<string, number>;
  readonly longestPauseMs: number;
}

/** What writers were told of one stream: that something is there, and when. */
export class StreamNotes {
  readonly name: string;
  /** The end of the last append that was acknowledged before now: no read that begins now may be behind it. */
  ackedEnd = 0;
  acked = 0;
  lastAckAtMs = performance.now();
  longestPauseMs = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** An append is acknowledged that ends at `end`; `null` where the answer does not say. */
  noteAck(end: number | null): void {
    const nowMs = performance.now();
    this.longestPauseMs = Math.max(this.longestPauseMs, nowMs - this.lastAckAtMs);
    this.lastAckAtMs = nowMs;
    this.acked += 1;
    if (end !== null) this.ackedEnd = Math.max(this.ackedEnd, end);
  }
}

/** What all clients of a load were told together. */
export class Ledger {
  readonly streams = new Map<string, StreamNotes>();
  readonly violations: string[] = [];
  /** How often something was sent again, by what came of the try before. */
  readonly retries = new Map<string, number>();
  isOver = false;

  streamOf(name: string): StreamNotes {
    const known = this.streams.get(name) ?? new StreamNotes(name);
    this.streams.set(name, known);
    return known;
  }

  get retried(): number {
    return [...this.retries.values()].reduce((sum, count) => sum + count, 0);
  }

  noteRetry(why: string): void {
    this.retries.set(why, (this.retries.get(why) ?? 0) + 1);
  }

  /** Something that must not be. */
  violated(what: string): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push(what);
  }

  get figures(): LoadFigures {
    const all = [...this.streams.values()];
    return {
      acked: all.reduce((sum, { acked }) => sum + acked, 0),
      retries: this.retries,
      longestPauseMs: Math.max(0, ...all.map(({ longestPauseMs }) => longestPauseMs)),
    };
  }
}
