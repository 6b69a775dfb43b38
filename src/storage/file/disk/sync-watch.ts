import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";

/** Between two looks at what the disk has not answered. */
const LOOK_MS = 1000;
/** A write that the disk has not answered for so long is worth a line in the log. */
const WARN_SECONDS = 5;
/** After so long nobody should send appends here any more. */
const HANG_SECONDS = 10;

/**
 * Knows for how long the disk has not answered a write that others wait for. Looks are counted, as the system's clock
 * may jump, and a batch costs no timer: a write is seen with the first look after it began, up to a second late.
 */
export class SyncWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  /** When each write that is not answered began, the oldest first. */
  readonly #startedMs = new Map<object, number>();
  /** The oldest as of the last look, while it is not answered. */
  #oldest: object | null = null;
  #seconds = 0;
  #isLooking = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** For how many seconds the oldest write that is not answered has been seen; 0 without one. */
  get oldestSeconds(): number {
    return this.#seconds;
  }

  /** Whether the disk has not answered for long. */
  get isHanging(): boolean {
    return this.#seconds >= HANG_SECONDS;
  }

  /** A write with its sync begins; it is known by `key`. */
  begin(key: object): void {
    this.#startedMs.set(key, this.#clock.nowMs());
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#lookLater();
  }

  /** It has succeeded or failed; returns how many milliseconds it took. */
  end(key: object): number {
    const nowMs = this.#clock.nowMs();
    const tookMs = nowMs - (this.#startedMs.get(key) ?? nowMs);
    this.#startedMs.delete(key);
    if (key === this.#oldest) this.#answered();
    return tookMs;
  }

  /** Watches `work`, which has begun. */
  async watch(work: Promise<void>): Promise<void> {
    this.begin(work);
    try {
      await work;
    } finally {
      this.end(work);
    }
  }

  #answered(): void {
    if (this.#seconds >= WARN_SECONDS) this.#log.info("the disk answers again", { afterSeconds: this.#seconds });
    this.#oldest = null;
    this.#seconds = 0;
  }

  #lookLater(): void {
    this.#clock.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    const [oldest] = this.#startedMs.keys();
    this.#isLooking = oldest !== undefined;
    if (oldest === undefined) return;
    if (oldest === this.#oldest) this.#seconds += 1;
    this.#oldest = oldest;
    if (this.#seconds === WARN_SECONDS)
      this.#log.error(`the disk has not answered for ${WARN_SECONDS} s: appends wait until it does`);
    this.#lookLater();
  }
}
