// Bounds the memory and the time of answers that their clients do not take.

import type { Clock, Timer } from "../../ops/clock.js";
import { unsentBytesOf } from "../node/write-queue.js";
import type { Sender } from "./client-address.js";
import { Holder, SharedRoom } from "./shared-room.js";
import { SharedBytes } from "./shared-bytes.js";

/** How long a client may take nothing of its answer before the connection is cut. */
const MAX_STALL_MS = 60_000;
/** How often the readers are checked. */
const LOOK_MS = 1_000;

/** An answer up to this size counts as small. */
export const SMALL_ANSWER_BYTES = 64 * 1024;
/** Refusing an answer of this size would cost as much as sending it. */
const TINY_ANSWER_BYTES = 8 * 1024;

/** How much memory answers may take that their clients have not taken. Sizes in bytes. */
export interface UnreadOptions {
  /** For all small answers together, and for all others. One answer always fits. */
  readonly maxSmallBytes: number;
  readonly maxLargeBytes: number;
  /** The usual size of a large answer. */
  readonly chunkBytes: number;
  readonly clock: Clock;
}

/** The answers of one kind, and the memory that they share. */
interface UnreadRoom {
  readonly room: SharedRoom<UnreadAnswer>;
  readonly shared: SharedBytes;
}

/** An answer that its client has not fully taken. */
export class UnreadAnswer extends Holder {
  readonly #in: UnreadRoom;
  readonly #memory: ArrayBufferLike | null;
  readonly #bytes: number;
  readonly #onRelease: () => void;
  #leftBytes: number;
  #takenAtMs: number;
  #isReleased = false;

  /** `body` is what was sent, whose memory other answers may share; or the length of a copy. */
  constructor(sender: Sender, unreadRoom: UnreadRoom, body: Buffer | number, nowMs: number, onRelease: () => void) {
    super(sender);
    this.#in = unreadRoom;
    this.#memory = typeof body === "number" ? null : body.buffer;
    this.#bytes = typeof body === "number" ? body : body.length;
    this.#onRelease = onRelease;
    this.#leftBytes = unsentBytesOf(this.socket);
    this.#takenAtMs = nowMs;
    this.movedAtMs = nowMs;
    unreadRoom.room.take(unreadRoom.shared.add(this.#memory, this.#bytes));
    unreadRoom.room.enter(this);
  }

  override get chargedBytes(): number {
    return this.#in.shared.chargeOf(this.#memory, this.#bytes);
  }

  override giveWay(): void {
    this.release();
    this.socket.destroy();
  }

  /** Cuts the connection of a client that takes nothing. */
  look(nowMs: number): void {
    const leftBytes = unsentBytesOf(this.socket);
    const takenBytes = this.#leftBytes - leftBytes;
    this.#leftBytes = leftBytes;
    if (takenBytes > 0) {
      this.#takenAtMs = nowMs;
      this.noteMoved(takenBytes, nowMs);
    } else if (nowMs - this.#takenAtMs >= MAX_STALL_MS) this.giveWay();
  }

  /** Forgets the answer: the client has taken it, or has gone. A second call does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const { room, shared } = this.#in;
    room.leave(this);
    room.give(shared.remove(this.#memory, this.#bytes));
    this.#onRelease();
  }
}

/** Bounds the answers that their clients have not taken: how much memory they use, and for how long. */
export class UnreadAnswers {
  readonly #clock: Clock;
  readonly #small: UnreadRoom;
  readonly #large: UnreadRoom;
  #timer: Timer | null = null;
  readonly #onRelease = (): void => this.#rest();

  constructor({ maxSmallBytes, maxLargeBytes, chunkBytes, clock }: UnreadOptions) {
    this.#clock = clock;
    this.#small = { room: new SharedRoom(maxSmallBytes, SMALL_ANSWER_BYTES, clock), shared: new SharedBytes() };
    this.#large = { room: new SharedRoom(maxLargeBytes, chunkBytes, clock), shared: new SharedBytes() };
  }

  /** Bytes of answers in memory. */
  get bytes(): number {
    return this.#small.room.bytes + this.#large.room.bytes;
  }

  /**
   * Whether a client may be sent `body`, or so many bytes that are yet to be made: false when there is no room for
   * their kind and nothing to evict.
   */
  admits(body: Buffer | number, { client }: Pick<Sender, "client">): boolean {
    const length = typeof body === "number" ? body : body.length;
    if (length <= TINY_ANSWER_BYTES) return true;
    const { room, shared } = this.#roomFor(length);
    const memory = typeof body === "number" ? null : body.buffer;
    if (room.fits(length) || room.fits(shared.addedBy(memory, length))) return true;
    room.makeRoom(length, client, null);
    // The body may have shared memory with what was evicted.
    return room.fits(shared.addedBy(memory, length));
  }

  /**
   * Counts an answer whose client has not taken all of `body`, or of a copy of so many bytes. Release it once the
   * client has.
   */
  add(sender: Sender, body: Buffer | number): UnreadAnswer {
    const room = this.#roomFor(typeof body === "number" ? body : body.length);
    const answer = new UnreadAnswer(sender, room, body, this.#clock.nowMs(), this.#onRelease);
    this.#timer ??= this.#clock.after(LOOK_MS, () => this.#look());
    return answer;
  }

  #roomFor(bytes: number): UnreadRoom {
    return bytes > SMALL_ANSWER_BYTES ? this.#large : this.#small;
  }

  #look(): void {
    this.#timer = this.#clock.after(LOOK_MS, () => this.#look());
    const nowMs = this.#clock.nowMs();
    for (const { room } of [this.#small, this.#large]) room.forEach((answer) => answer.look(nowMs));
  }

  /** No timer runs while there is no reader. */
  #rest(): void {
    if (!this.#small.room.isVacant || !this.#large.room.isVacant) return;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
