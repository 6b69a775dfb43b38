import type { Log } from "../../../ops/log.js";

/** What a shard has, as its leader says. */
export interface ShardState {
  /** When it was made, as the servers write it. */
  readonly created: string;
  /** The sequence of its first message, or of the next one where there is none. */
  readonly first: number;
  /** The last sequence that it gave out; 0 while it never had a message. */
  readonly last: number;
  /** Messages of its reserve, where these were asked for. */
  readonly reserved: number;
}

/** Tells of each shard that is not what it was: somebody has made it anew, or emptied it, by hand. */
export class Continuity {
  readonly #notices: Log;
  readonly #seen = new Map<string, ShardState>();

  /** `notices` is the server's log. */
  constructor(notices: Log) {
    this.#notices = notices;
  }

  /** Notes what a shard has now; its leader said so. */
  saw(shard: string, state: ShardState): void {
    const before = this.#seen.get(shard);
    this.#seen.set(shard, state);
    if (before === undefined) return;
    if (before.created !== state.created) this.#notices.error(`${shard} was deleted and made anew by somebody else`);
    // Without a reserve, all that there was may have been one stream, which was deleted.
    else if (before.reserved > 0 && state.first > before.last)
      this.#notices.error(`all messages of ${shard} were purged by somebody else`);
  }
}
