import { whereAvailable, type OnUnavailable, type Published } from "../log/replicated-log.js";
import type { ClusterParts } from "../reading/state-reader.js";

/** What each shard holds in reserve: so many messages of so many bytes. */
export const RESERVED_MESSAGES = 16;
const MESSAGE_BYTES = 4 * 1024;
/** More than the reserve and the heads of its messages. */
const READ_BYTES = 4 * RESERVED_MESSAGES * MESSAGE_BYTES;

const FILLING = Buffer.alloc(MESSAGE_BYTES);
const HEAD = "{}";

/**
 * Holds room in each shard for the messages that make room: tombstones, and new beginnings of streams. They are
 * refused like any other where the shard has reached its limit. Then a message of the reserve is dropped for them. It
 * has no data, so nothing is lost wherever a server ends between the two.
 */
export class Reserve {
  readonly #parts: ClusterParts;
  /** Shards of whose reserve this front end has dropped messages. */
  readonly #spent = new Set<number>();
  #filling: Promise<unknown> = Promise.resolve();

  constructor(parts: ClusterParts) {
    this.#parts = parts;
  }

  /** Makes some room in the shard of a stream; says whether there was anything in reserve. */
  async makeRoomFor(name: string): Promise<boolean> {
    const { log, subjects } = this.#parts;
    const shard = subjects.shardOf(name);
    const subject = subjects.ofReserve(shard);
    const first = await log.next(subject, 1);
    if (first === null) return false;
    this.#spent.add(shard);
    await log.purge(subject, first.sequence + 1);
    return true;
  }

  /** Fills up what this front end has spent of the shard of a stream, which has dropped bytes. */
  async refillFor(name: string): Promise<void> {
    const shard = this.#parts.subjects.shardOf(name);
    if (!this.#spent.has(shard)) return;
    await this.#afterOthers(async () => {
      if (this.#spent.has(shard) && (await this.#fill(shard))) this.#spent.delete(shard);
    });
  }

  /** Fills up the reserves of all shards, as far as there is room; `onUnavailable` is told of those that are left. */
  async fill(onUnavailable: OnUnavailable): Promise<void> {
    for (let shard = 0; shard < this.#parts.subjects.shards; shard += 1)
      await whereAvailable(() => this.#afterOthers(() => this.#fill(shard)), onUnavailable);
  }

  #afterOthers<T>(run: () => Promise<T>): Promise<T> {
    const filled = this.#filling.then(run);
    this.#filling = filled.catch(() => undefined); // whoever asked for it is told
    return filled;
  }

  /** Says whether the reserve is full now. */
  async #fill(shard: number): Promise<boolean> {
    const { log, subjects } = this.#parts;
    const subject = subjects.ofReserve(shard);
    for (let tries = 0; tries < RESERVED_MESSAGES; tries += 1) {
      const there = await log.range(subject, 1, READ_BYTES);
      const missing = RESERVED_MESSAGES - there.length;
      const how = await this.#add(subject, missing, there.at(-1)?.sequence ?? 0);
      // Another front end fills it too, or spends it.
      if (how !== "moved") return how === "stored";
    }
    return false;
  }

  async #add(subject: string, count: number, after: number): Promise<Published["kind"]> {
    let last = after;
    for (let added = 0; added < count; added += 1) {
      const published = await this.#parts.log.publish(subject, HEAD, FILLING, last);
      if (published.kind !== "stored") return published.kind;
      last = published.sequence;
    }
    return "stored";
  }
}
