// Bounds the memory and the time of answers that their clients do not take.

import type { Socket } from "node:net";
import type { Clock, Timer } from "../../ops/clock.js";
import { clientAddressOf } from "./client-address.js";
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

/** How many written bytes the system has not taken. */
interface WriteQueue {
  readonly writeQueueSize?: number;
}

/** Node's private field for it; there is no public one. Under TLS only the connection below has it. */
interface QueuedSocket {
  readonly _handle?: (WriteQueue & { readonly _parent?: WriteQueue }) | null;
}

/** Shrinks whenever the client takes something, even part of a single write. */
function leftOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & QueuedSocket; // as its type says
  return socket.writableLength + (handle?._parent?.writeQueueSize ?? handle?.writeQueueSize ?? 0);
}

/** The parts of an unread answer. */
interface UnreadAnswerOptions {
  readonly socket: Socket;
  readonly unreadRoom: UnreadRoom;
  readonly bytes: number;
  /** Memory that other answers may share; `null` for a copy. */
  readonly memory: ArrayBufferLike | null;
  readonly nowMs: number;
  readonly onRelease: () => void;
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

  constructor({ socket, unreadRoom, bytes, memory, nowMs, onRelease }: UnreadAnswerOptions) {
    super(socket);
    this.#in = unreadRoom;
    this.#memory = memory;
    this.#bytes = bytes;
    this.#onRelease = onRelease;
    this.#leftBytes = leftOf(socket);
    this.#takenAtMs = nowMs;
    this.movedAtMs = nowMs;
    unreadRoom.room.take(unreadRoom.shared.add(memory, bytes));
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
    const leftBytes = leftOf(this.socket);
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
    this.#small = {
      room: new SharedRoom({ maxBytes: maxSmallBytes, minShareBytes: SMALL_ANSWER_BYTES, clock }),
      shared: new SharedBytes(),
    };
    this.#large = {
      room: new SharedRoom({ maxBytes: maxLargeBytes, minShareBytes: chunkBytes, clock }),
      shared: new SharedBytes(),
    };
  }

  /** Bytes of answers in memory. */
  get bytes(): number {
    return this.#small.room.bytes + this.#large.room.bytes;
  }

  /** Whether a client may be sent `body`: false when there is no room for its kind and nothing to evict. */
  admits(body: Buffer, socket: Socket): boolean {
    const { length } = body;
    if (length <= TINY_ANSWER_BYTES) return true;
    const { room, shared } = this.#roomFor(length);
    if (room.fits(length) || room.fits(shared.addedBy(body.buffer, length))) return true;
    room.makeRoom(length, clientAddressOf(socket), null);
    // The body may have shared memory with what was evicted.
    return room.fits(shared.addedBy(body.buffer, length));
  }

  /**
   * Counts an answer whose client has not taken all of `body`, or of a copy of so many bytes. Release it once the
   * client has.
   */
  add(socket: Socket, body: Buffer | number): UnreadAnswer {
    const [bytes, memory] = typeof body === "number" ? [body, null] : [body.length, body.buffer];
    const answer = new UnreadAnswer({
      socket,
      unreadRoom: this.#roomFor(bytes),
      bytes,
      memory,
      nowMs: this.#clock.nowMs(),
      onRelease: this.#onRelease,
    });
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
