import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";

/** Between two looks at what the disk has not answered. */
const LOOK_MS = 1000;
/** A write that the disk has not answered for so long is worth a line in the log. */
const WARN_SECONDS = 5;
/** After so long nobody should send appends here any more. */
const HANG_SECONDS = 10;
/** What a disk writes in a second, however slow it is: large appends may take that long before they are missed. */
const SLOWEST_BYTES_PER_SECOND = 4 * 1024 * 1024;

/** Writes that the disk has not answered. */
class Unanswered {
  #count = 0;
  #bytes = 0;
  /** Those of them that explain why it takes long. */
  #excusedBytes = 0;
  /** Whether a look has seen them since the disk last answered. */
  #isSeen = false;
  #seconds = 0;

  get count(): number {
    return this.#count;
  }

  /** For how many seconds the disk has answered none of them, beyond those that their size takes. */
  get overdueSeconds(): number {
    return Math.max(0, this.#seconds - Math.floor(this.#excusedBytes / SLOWEST_BYTES_PER_SECOND));
  }

  begin(bytes: number): void {
    this.#count += 1;
    this.#bytes += bytes;
    // What comes once others are overdue is no excuse for them.
    if (this.overdueSeconds === 0) this.#excusedBytes = this.#bytes;
  }

  end(bytes: number): void {
    this.#count -= 1;
    this.#bytes -= bytes;
    this.answered();
  }

  /** The disk has answered: the others come later, not never. */
  answered(): void {
    this.#isSeen = false;
    this.#seconds = 0;
    this.#excusedBytes = this.#bytes;
  }

  look(): void {
    if (this.#count === 0) return;
    if (this.#isSeen) this.#seconds += 1;
    this.#isSeen = true;
  }
}

/**
 * Knows for how long the disk has not answered the write of a batch, of which there is one at a time, and those of
 * large appends, which may take as long as their size does. Looks are counted, as the system's clock may jump, and a
 * write costs no timer: it is seen with the first look after it began, up to a second late.
 */
export class SyncWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #batch = new Unanswered();
  readonly #large = new Unanswered();
  #startedMs = 0;
  #isLooking = false;
  #isTold = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** For how many seconds a write that is not answered has been overdue; 0 without one. */
  get unansweredSeconds(): number {
    return Math.max(this.#batch.overdueSeconds, this.#large.overdueSeconds);
  }

  /** Whether the disk has not answered for long. */
  get isHanging(): boolean {
    return this.unansweredSeconds >= HANG_SECONDS;
  }

  /** The write of a batch with its sync begins. */
  begin(): void {
    this.#startedMs = this.#clock.nowMs();
    this.#batch.begin(0);
    this.#lookLater();
  }

  /** It has succeeded or failed; returns how many milliseconds it took. */
  end(): number {
    const seconds = this.unansweredSeconds;
    this.#batch.end(0);
    this.#large.answered();
    this.#tellAgain(seconds);
    return this.#clock.nowMs() - this.#startedMs;
  }

  /** Runs the write of a large payload with its syncs, and what has to come before it. */
  async large(bytes: number, write: () => Promise<void>): Promise<void> {
    this.#large.begin(bytes);
    this.#lookLater();
    try {
      await write();
    } finally {
      const seconds = this.unansweredSeconds;
      this.#large.end(bytes);
      this.#tellAgain(seconds);
    }
  }

  /** The disk has answered something that a large payload may have had to wait for. */
  answered(): void {
    const seconds = this.unansweredSeconds;
    this.#large.answered();
    this.#tellAgain(seconds);
  }

  #lookLater(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#clock.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    this.#isLooking = false;
    this.#batch.look();
    this.#large.look();
    if (!this.#isTold && this.unansweredSeconds >= WARN_SECONDS) {
      this.#isTold = true;
      this.#log.error(`the disk has not answered for ${WARN_SECONDS} s: appends wait until it does`);
    }
    if (this.#batch.count + this.#large.count > 0) this.#lookLater();
  }

  /** Tells that the disk answers again, unless it has left another write without an answer as long. */
  #tellAgain(afterSeconds: number): void {
    if (!this.#isTold || this.unansweredSeconds >= WARN_SECONDS) return;
    this.#isTold = false;
    this.#log.info("the disk answers again", { afterSeconds });
  }
}
