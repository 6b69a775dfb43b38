// Bounds the memory of request bodies.

import type { Clock } from "../../ops/clock.js";
import type { Sender } from "./client-address.js";
import { Holder, SharedRoom } from "./shared-room.js";

/** A body up to this size counts as small: small bodies have memory that larger ones can't take. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** How much memory request bodies may take. Sizes in bytes. */
export interface BodyMemoryOptions {
  /** For all small bodies together, and for all others. One body always fits. */
  readonly maxSmallBytes: number;
  readonly maxLargeBytes: number;
  /** The largest that one body may be. */
  readonly maxBodyBytes: number;
  readonly clock: Clock;
}

/** A body in memory, from its first byte until its request is answered. It can be evicted only while it is arriving. */
export abstract class HeldBody extends Holder {
  /** What the head promises; 0 where it promises nothing. */
  readonly promisedBytes: number;
  heldBytes = 0;
  room: SharedRoom<HeldBody> | null = null;

  constructor(sender: Sender, promisedBytes: number) {
    super(sender);
    this.promisedBytes = promisedBytes;
  }

  override get chargedBytes(): number {
    return this.heldBytes;
  }

  /** The body is complete, so it can no longer be evicted. */
  finish(): void {
    this.room?.leave(this);
  }

  /** Frees its memory. A second call does nothing. */
  release(): void {
    this.room?.leave(this);
    this.room?.give(this.heldBytes);
    this.room = null;
    this.heldBytes = 0;
  }
}

/** Memory for the bodies of all requests. */
export class BodyMemory {
  readonly #clock: Clock;
  readonly #small: SharedRoom<HeldBody>;
  readonly #large: SharedRoom<HeldBody>;

  constructor({ maxSmallBytes, maxLargeBytes, maxBodyBytes, clock }: BodyMemoryOptions) {
    this.#clock = clock;
    this.#small = new SharedRoom(maxSmallBytes, SMALL_BODY_BYTES, clock);
    this.#large = new SharedRoom(Math.max(maxLargeBytes, maxBodyBytes), maxBodyBytes, clock);
  }

  /** Bytes of bodies in memory. */
  get bytes(): number {
    return this.#small.bytes + this.#large.bytes;
  }

  /** Counts `bytes` more of a body; false when there is no room for them and nothing to evict. */
  hold(body: HeldBody, bytes: number): boolean {
    const heldBytes = body.heldBytes + bytes;
    const room = Math.max(heldBytes, body.promisedBytes) > SMALL_BODY_BYTES ? this.#large : this.#small;
    const neededBytes = room === body.room ? bytes : heldBytes;
    if (!room.fits(neededBytes) && !room.makeRoom(neededBytes, body.client, body)) return false;
    // A body that has outgrown the small ones is moved to the others.
    if (room !== body.room) body.release();
    body.room = room;
    body.heldBytes = heldBytes;
    room.take(neededBytes);
    if (heldBytes !== body.promisedBytes) this.#await(body, room, bytes);
    return true;
  }

  /** Whether more of it is to come. */
  #await(body: HeldBody, room: SharedRoom<HeldBody>, bytes: number): void {
    const nowMs = this.#clock.nowMs();
    if (body.slot < 0) {
      body.movedAtMs = nowMs;
      room.enter(body);
    }
    body.noteMoved(bytes, nowMs);
  }
}
