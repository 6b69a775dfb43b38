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

/** Notices that a shard is not what it was: somebody has made it anew, or emptied it, by hand. */
export class Continuity {
  readonly #seen = new Map<string, ShardState>();

  /** What has become of a shard since it was seen before; `null` where it goes on as it was. */
  breakOf(shard: string, state: ShardState): "remade" | "emptied" | null {
    const before = this.#seen.get(shard);
    this.#seen.set(shard, state);
    if (before === undefined) return null;
    if (before.created !== state.created) return "remade";
    // Without a reserve, all that there was may have been one stream, which was deleted.
    return before.reserved > 0 && state.first > before.last ? "emptied" : null;
  }
}
