import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";

/** Between two looks at what the disk has not answered. */
const LOOK_MS = 1000;
/** A write that the disk has not answered for so long is worth a line in the log. */
const WARN_SECONDS = 5;
/** After so long nobody should send appends here any more. */
const HANG_SECONDS = 10;

/**
 * Knows for how long the disk has not answered the write of a batch, of which there is one at a time. Looks are
 * counted, as the system's clock may jump, and a batch costs no timer: it is seen with the first look after it began,
 * up to a second late. Large appends are not watched, as they take as long as their size does: a hang of theirs alone
 * is not seen, for the batch that each ends with does not begin.
 */
export class SyncWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  #startedMs = 0;
  /** Whether a write is not answered. */
  #isWaiting = false;
  /** Whether a look has seen it. */
  #isSeen = false;
  #seconds = 0;
  #isLooking = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** For how many seconds the write that is not answered has been seen; 0 without one. */
  get unansweredSeconds(): number {
    return this.#seconds;
  }

  /** Whether the disk has not answered for long. */
  get isHanging(): boolean {
    return this.#seconds >= HANG_SECONDS;
  }

  /** A write with its sync begins. */
  begin(): void {
    this.#startedMs = this.#clock.nowMs();
    this.#isWaiting = true;
    this.#isSeen = false;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#lookLater();
  }

  /** It has succeeded or failed; returns how many milliseconds it took. */
  end(): number {
    if (this.#seconds >= WARN_SECONDS) this.#log.info("the disk answers again", { afterSeconds: this.#seconds });
    this.#isWaiting = false;
    this.#seconds = 0;
    return this.#clock.nowMs() - this.#startedMs;
  }

  #lookLater(): void {
    this.#clock.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    this.#isLooking = this.#isWaiting;
    if (!this.#isWaiting) return;
    if (this.#isSeen) this.#seconds += 1;
    this.#isSeen = true;
    if (this.#seconds === WARN_SECONDS)
      this.#log.error(`the disk has not answered for ${WARN_SECONDS} s: appends wait until it does`);
    this.#lookLater();
  }
}
