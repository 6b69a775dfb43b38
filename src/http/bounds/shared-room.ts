import type { Socket } from "node:net";
import type { Clock } from "../../ops/clock.js";
import { clientAddressOf } from "./client-address.js";

/** What moved less than this for so long stands still: less than 1 KiB a second. */
const STILL_MS = 10_000;
const MOVED_BYTES = 10 * 1024;

/** How long a client for whom there was no room is refused without another search. */
const SEARCH_PAUSE_MS = 100;

/** Why somebody has to give way: nothing of it moves, or its client has more than its share. */
export type Cause = "still" | "share";

/** Memory that waits for a client, and that can be had back by ending what the client does. */
export abstract class Holder {
  /** Its place in its room; negative when it is in none. */
  slot = -1;
  /** When it last had moved enough. */
  movedAtMs = 0;
  readonly socket: Socket;
  #movedBytes = 0;
  #client: string | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Whom it counts for. */
  get client(): string {
    return (this.#client ??= clientAddressOf(this.socket));
  }

  /** The client sent or took `bytes`. */
  noteMoved(bytes: number, nowMs: number): void {
    this.#movedBytes += bytes;
    if (this.#movedBytes < MOVED_BYTES) return;
    this.#movedBytes = 0;
    this.movedAtMs = nowMs;
  }

  /** How much memory its client is charged for it. */
  abstract get chargedBytes(): number;

  /** Ends it and gives its memory back, at once. */
  abstract giveWay(cause: Cause): void;
}

/** What a room is made of. Sizes in bytes. */
export interface SharedRoomOptions {
  readonly maxBytes: number;
  /** What one client may have in any case, unless it is more than half of the room. */
  readonly minShareBytes: number;
  readonly clock: Clock;
}

/**
 * Memory that all clients share. One alone may have all of it; it is only when somebody finds no room that others give
 * way: first what stands still, then what clients have beyond equal shares. Nothing is counted by client before that.
 */
export class SharedRoom<H extends Holder = Holder> {
  readonly #maxBytes: number;
  readonly #minShareBytes: number;
  readonly #clock: Clock;
  /** Those that can give way. Each knows its slot. */
  readonly #holders: H[] = [];
  #bytes = 0;
  /** Clients for whom there was no room, until then. */
  readonly #refused = new Set<string>();
  #refusedUntilMs = 0;

  constructor({ maxBytes, minShareBytes, clock }: SharedRoomOptions) {
    this.#maxBytes = maxBytes;
    this.#minShareBytes = minShareBytes;
    this.#clock = clock;
  }

  /** Bytes that are taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nobody is in the room who could give way. */
  get isVacant(): boolean {
    return this.#holders.length === 0;
  }

  /** Whether so many bytes fit; whatever it is, it fits where nothing else is. */
  fits(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes || this.#bytes === 0;
  }

  /** Counts bytes, whether they fit or not. */
  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Counts bytes that were taken no longer. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** From now on `holder` may have to give way. */
  enter(holder: H): void {
    holder.slot = this.#holders.push(holder) - 1;
  }

  /** It need not give way any more; does nothing when it is not in the room. */
  leave(holder: H): void {
    const { slot } = holder;
    if (slot < 0) return;
    holder.slot = -1;
    const last = this.#holders.pop();
    if (last === undefined || last === holder) return;
    last.slot = slot;
    this.#holders[slot] = last;
  }

  /** Calls `visit` for all that can give way; it may end the one that it is called for. */
  forEach(visit: (holder: H) => void): void {
    for (let at = this.#holders.length - 1; at >= 0; at -= 1) {
      const holder = this.#holders[at];
      if (holder !== undefined) visit(holder);
    }
  }

  /**
   * Has others give way until `bytes` more fit for `client`, but not `asker`; false when they do not fit all the same.
   */
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

  /** What stands still ends, the longest first. */
  #endStill(bytes: number, asker: H | null, nowMs: number): void {
    const still = this.#holders.filter((holder) => holder !== asker && nowMs - holder.movedAtMs >= STILL_MS);
    for (const holder of still.sort(byMove)) {
      if (this.fits(bytes)) return;
      holder.giveWay("still");
    }
  }

  /** For a client within its share, what others have beyond theirs ends; what moved last ends last. */
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
