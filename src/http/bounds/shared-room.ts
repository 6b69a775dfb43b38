// Shares a bounded amount of memory between clients, fairly.

import type { Clock } from "../../ops/clock.js";
import type { Line } from "../node/message.js";
import type { Sender } from "./client-address.js";

/** A client that moved fewer bytes than this in this time stands still: less than 1 KiB a second. */
const STILL_MS = 10_000;
const MOVED_BYTES = 10 * 1024;

/** How long a client that found no room is refused without another search. */
const SEARCH_PAUSE_MS = 100;

/** Why a holder is evicted: it stands still, or its client has more than its share. */
export type Cause = "still" | "share";

/** A holder of memory that waits for its client, and that can be evicted to free the memory. */
export abstract class Holder {
  /** Its slot in its room; negative when it is in none. */
  slot = -1;
  /** When it last moved enough bytes. */
  movedAtMs = 0;
  readonly socket: Line;
  readonly #sender: Sender;
  #movedBytes = 0;

  constructor(sender: Sender) {
    this.#sender = sender;
    this.socket = sender.req.socket;
  }

  /** The client it is charged to. */
  get client(): string {
    return this.#sender.client;
  }

  /** The client sent or took `bytes`. */
  noteMoved(bytes: number, nowMs: number): void {
    this.#movedBytes += bytes;
    if (this.#movedBytes < MOVED_BYTES) return;
    this.#movedBytes = 0;
    this.movedAtMs = nowMs;
  }

  /** Bytes that its client is charged for. */
  abstract get chargedBytes(): number;

  /** Ends it and frees its memory at once. */
  abstract giveWay(cause: Cause): void;
}

/**
 * Memory that all clients share. One client may have all of it. When another finds no room, holders are evicted: first
 * those that stand still, then those of clients beyond an equal share. Nothing is counted by client before that.
 */
export class SharedRoom<H extends Holder = Holder> {
  readonly #maxBytes: number;
  readonly #minShareBytes: number;
  readonly #clock: Clock;
  /** The holders that can be evicted. Each knows its slot. */
  readonly #holders: H[] = [];
  #bytes = 0;
  /** Clients that found no room, and until when they are refused. */
  readonly #refused = new Set<string>();
  #refusedUntilMs = 0;

  /** One client may always have `minShareBytes`, but at most half of the room. */
  constructor(maxBytes: number, minShareBytes: number, clock: Clock) {
    this.#maxBytes = maxBytes;
    this.#minShareBytes = minShareBytes;
    this.#clock = clock;
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the room has no holder that could be evicted. */
  get isVacant(): boolean {
    return this.#holders.length === 0;
  }

  /** Whether `bytes` fit. In an empty room anything fits. */
  fits(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes || this.#bytes === 0;
  }

  /** Counts bytes, whether they fit or not. */
  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Stops counting bytes. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Makes `holder` evictable. */
  enter(holder: H): void {
    holder.slot = this.#holders.push(holder) - 1;
  }

  /** Makes `holder` no longer evictable; does nothing when it is not in the room. */
  leave(holder: H): void {
    const { slot } = holder;
    if (slot < 0) return;
    holder.slot = -1;
    const last = this.#holders.pop();
    if (last === undefined || last === holder) return;
    last.slot = slot;
    this.#holders[slot] = last;
  }

  /** Calls `visit` for each evictable holder; it may end the one it is called for. */
  forEach(visit: (holder: H) => void): void {
    for (let at = this.#holders.length - 1; at >= 0; at -= 1) {
      const holder = this.#holders[at];
      if (holder !== undefined) visit(holder);
    }
  }

  /** Evicts other holders than `asker` until `bytes` more fit for `client`; false when they still do not fit. */
  makeRoom(bytes: number, client: string, asker: H | null): boolean {
    const nowMs = this.#clock.nowMs();
    if (nowMs >= this.#refusedUntilMs) this.#refused.clear();
    if (this.#refused.has(client)) return false;
    this.#endStill(bytes, asker, nowMs);
    if (!this.fits(bytes)) this.#endExcess(bytes, client);
    if (this.fits(bytes)) return true;
    if (this.#refused.size === 0) this.#refusedUntilMs = nowMs + SEARCH_PAUSE_MS;
    this.#refused.add(client);
    return false;
  }

  /** Evicts what stands still, the longest first. */
  #endStill(bytes: number, asker: H | null, nowMs: number): void {
    const still = this.#holders.filter((holder) => holder !== asker && nowMs - holder.movedAtMs >= STILL_MS);
    for (const holder of still.sort(byMove)) {
      if (this.fits(bytes)) return;
      holder.giveWay("still");
    }
  }

  /**
   * Evicts what other clients hold beyond their shares, for a client within its own. What moved last is evicted last.
   */
  #endExcess(bytes: number, client: string): void {
    const held = new Map([[client, bytes]]);
    const heldBy = (other: string): number => held.get(other) ?? 0;
    for (const { client: other, chargedBytes } of this.#holders) held.set(other, heldBy(other) + chargedBytes);
    const shareBytes = Math.min(this.#maxBytes / 2, Math.max(this.#maxBytes / held.size, this.#minShareBytes));
    if (heldBy(client) > shareBytes) return;
    const excess = this.#holders.filter((holder) => heldBy(holder.client) > shareBytes);
    for (const holder of excess.sort(byMove)) {
      if (this.fits(bytes)) return;
      const heldBytes = heldBy(holder.client);
      if (heldBytes <= shareBytes) continue;
      held.set(holder.client, heldBytes - holder.chargedBytes);
      holder.giveWay("share");
    }
  }
}

function byMove(a: Holder, b: Holder): number {
  return a.movedAtMs - b.movedAtMs;
}
