import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";

/** Between two looks at what the disk has not answered. */
const LOOK_MS = 250;
const LOOKS_PER_SECOND = 1000 / LOOK_MS;
/** A write that the disk has not answered for so long is worth a line in the log. */
const WARN_SECONDS = 5;
/** After so long nobody should send appends here any more. */
const HANG_SECONDS = 10;
/** What a disk writes in a second, however slow it is: large appends may take that long before they are missed. */
const SLOWEST_BYTES_PER_SECOND = 4 * 1024 * 1024;

/** What the disk has not answered. */
class Unanswered {
  #count = 0;
  #bytes = 0;
  /** Those of them that explain why it takes long. */
  #excusedBytes = 0;
  /** Whether a look has seen it since the disk last answered. */
  #isSeen = false;
  #looks = 0;

  get count(): number {
    return this.#count;
  }

  /** For how many looks the disk has answered none of it, beyond those that its size takes. */
  get overdueLooks(): number {
    const excusedSeconds = Math.floor(this.#excusedBytes / SLOWEST_BYTES_PER_SECOND);
    return Math.max(0, this.#looks - excusedSeconds * LOOKS_PER_SECOND);
  }

  begin(bytes: number): void {
    this.#count += 1;
    this.expect(bytes);
  }

  end(bytes: number): void {
    this.#count -= 1;
    this.#bytes -= bytes;
    this.answered();
  }

  /** The disk has so much to do before it answers. */
  expect(bytes: number): void {
    this.#bytes += bytes;
    // What comes once others are overdue is no excuse for them.
    if (this.overdueLooks === 0) this.#excusedBytes = Math.max(this.#excusedBytes, this.#bytes);
  }

  /** It has so much less to do. What has waited for that keeps the excuse until the disk answers. */
  expectLess(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The disk has answered: the others come later, not never. */
  answered(): void {
    this.#isSeen = false;
    this.#looks = 0;
    this.#excusedBytes = this.#bytes;
  }

  look(): void {
    if (this.#count === 0) return;
    if (this.#isSeen) this.#looks += 1;
    this.#isSeen = true;
  }
}

/**
 * Knows for how long the disk has not answered what appends wait for: the write of a batch, of which there is one at a
 * time; the journal's next file or the checkpoint that frees one, while the journal can't write a batch without; and
 * the writes of large appends, which may take as long as their size does. Looks are counted, as the system's clock may
 * jump, and a write costs no timer: it is seen with the first look after it began.
 */
export class SyncWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #batch = new Unanswered();
  readonly #room = new Unanswered();
  readonly #large = new Unanswered();
  #startedMs = 0;
  #isLooking = false;
  #isTold = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** For how many seconds what is not answered has been overdue; 0 where all is answered. */
  get unansweredSeconds(): number {
    return Math.floor(this.#overdueLooks / LOOKS_PER_SECOND);
  }

  /** Whether the disk has not answered for long. */
  get isHanging(): boolean {
    return this.unansweredSeconds >= HANG_SECONDS;
  }

  get #overdueLooks(): number {
    return Math.max(this.#batch.overdueLooks, this.#room.overdueLooks, this.#large.overdueLooks);
  }

  /** The write of a batch with its sync begins. */
  begin(): void {
    this.waitForRoom(false);
    this.#startedMs = this.#clock.nowMs();
    this.#batch.begin(0);
    this.#lookLater();
  }

  /** It has succeeded or failed; returns how many milliseconds it took. */
  end(): number {
    const looks = this.#overdueLooks;
    this.#batch.end(0);
    this.#large.answered();
    this.#tellAgain(looks);
    return this.#clock.nowMs() - this.#startedMs;
  }

  /** Whether entries wait for room in the journal: for its next file, or for the checkpoint that frees one. */
  waitForRoom(isWaiting: boolean): void {
    if (isWaiting === this.#room.count > 0) return;
    if (isWaiting) {
      this.#room.begin(0);
      this.#lookLater();
    } else {
      const looks = this.#overdueLooks;
      this.#room.end(0);
      this.#tellAgain(looks);
    }
  }

  /** Whoever makes room in the journal has come further: it may be slow, but the disk does not hang. */
  progressed(): void {
    const looks = this.#overdueLooks;
    this.#room.answered();
    this.#tellAgain(looks);
  }

  /** Runs what makes room in the journal and brings `bytes` to the disk: it may take as long as they do. */
  async bringing(bytes: number, write: () => Promise<void>): Promise<void> {
    this.#room.expect(bytes);
    try {
      await write();
    } finally {
      this.#room.expectLess(bytes);
      this.progressed();
    }
  }

  /** Runs the write of a large payload with its syncs, and what has to come before it. */
  async large(bytes: number, write: () => Promise<void>): Promise<void> {
    this.#large.begin(bytes);
    // A checkpoint of the same stream waits for it. Its end is no progress of that: there may always be another.
    this.#room.expect(bytes);
    this.#lookLater();
    try {
      await write();
    } finally {
      const looks = this.#overdueLooks;
      this.#room.expectLess(bytes);
      this.#large.end(bytes);
      this.#tellAgain(looks);
    }
  }

  /** The disk has answered something that a large payload may have had to wait for. */
  answered(): void {
    const looks = this.#overdueLooks;
    this.#large.answered();
    this.#tellAgain(looks);
  }

  #lookLater(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#clock.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    this.#isLooking = false;
    for (const unanswered of [this.#batch, this.#room, this.#large]) unanswered.look();
    if (!this.#isTold && this.unansweredSeconds >= WARN_SECONDS) {
      this.#isTold = true;
      this.#log.error(`the disk has not answered for ${WARN_SECONDS} s: appends wait until it does`);
    }
    if (this.#batch.count + this.#room.count + this.#large.count > 0) this.#lookLater();
  }

  /** Tells that the disk answers again, unless it has left something else without an answer as long. */
  #tellAgain(looks: number): void {
    if (!this.#isTold || this.unansweredSeconds >= WARN_SECONDS) return;
    this.#isTold = false;
    // Up to two looks more than were counted: one before the first, and one that would have come next.
    this.#log.info("the disk answers again", { afterSeconds: Math.round((looks + 1) / LOOKS_PER_SECOND) });
  }
}
