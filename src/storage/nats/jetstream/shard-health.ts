import type { Clock, Timer } from "../../../ops/clock.js";
import type { LogHealth } from "../log/replicated-log.js";

/** How long a shard may be without an answer of its leader before the server says that it can't write. */
const PATIENCE_MS = 2000;
/** How often a shard is asked of which nothing was heard. */
const PROBE_MS = 1000;

/** Knows of each shard when its leader last answered, and asks those of which nothing was heard. */
export class ShardHealth {
  readonly #heardAtMs: Map<string, number>;
  readonly #clock: Clock;
  readonly #probe: (shard: string) => void;
  readonly #connectionFault: () => string | null;
  #timer: Timer;

  /** `probe` asks the leader of a shard for anything; `connectionFault` says why nobody can be asked at all. */
  constructor(
    shards: readonly string[],
    clock: Clock,
    probe: (shard: string) => void,
    connectionFault: () => string | null,
  ) {
    this.#heardAtMs = new Map(shards.map((shard) => [shard, clock.nowMs()]));
    this.#clock = clock;
    this.#probe = probe;
    this.#connectionFault = connectionFault;
    this.#timer = clock.after(PROBE_MS, () => this.#probeQuiet());
  }

  /** The leader of a shard has answered. */
  heard(shard: string): void {
    this.#heardAtMs.set(shard, this.#clock.nowMs());
  }

  #probeQuiet(): void {
    const nowMs = this.#clock.nowMs();
    for (const [shard, heardAtMs] of this.#heardAtMs) if (nowMs - heardAtMs >= PROBE_MS) this.#probe(shard);
    this.#timer = this.#clock.after(PROBE_MS, () => this.#probeQuiet());
  }

  /** Whether each shard has a leader that answers. */
  get health(): LogHealth {
    const nowMs = this.#clock.nowMs();
    // A probe goes out a while after the last answer, and takes a while.
    const limitMs = PATIENCE_MS + PROBE_MS;
    const silent = [...this.#heardAtMs].filter(([, heardAtMs]) => nowMs - heardAtMs > limitMs).map(([shard]) => shard);
    const reason =
      this.#connectionFault() ?? (silent.length === 0 ? null : `no leader answers for ${silent.join(", ")}`);
    return { writable: reason === null, reason };
  }

  /** Asks no more. */
  stop(): void {
    this.#timer.cancel();
  }
}
