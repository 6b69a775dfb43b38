import { basename, dirname } from "node:path";
import type { MaybePromise } from "../../storage.js";
import { isPathFault, type Files } from "../disk/files.js";
import { NameFilter } from "./name-filter.js";

/** The directories of one shard, while they are listed. */
interface Listing {
  /** `null` where that can't be told. */
  readonly filter: Promise<NameFilter | null>;
  /** What was added meanwhile. */
  readonly added: string[];
}

/**
 * Which streams may have a directory: a shard is listed when one of its streams is first asked for, and that answers
 * for all of them. So a name that nobody has costs no look at the disk, however many are made or asked for. It takes
 * two to four bytes for each stream on disk.
 */
export class StreamDirectories {
  readonly #files: Files;
  readonly #shards = new Map<string, NameFilter | null>();
  readonly #listings = new Map<string, Listing>();

  constructor({ files }: { readonly files: Files }) {
    this.#files = files;
  }

  /**
   * Whether there may be something at a stream's directory: what can't be looked at may be there, and whoever uses it
   * is told why it can't be. Rejects when the disk fails.
   */
  mayHave(directory: string): MaybePromise<boolean> {
    const shard = dirname(directory);
    const filter = this.#shards.get(shard);
    if (filter !== undefined) return filter?.mayHave(basename(directory)) ?? true;
    const listing = this.#listings.get(shard) ?? this.#startListing(shard);
    return listing.filter.then((listed) => listed?.mayHave(basename(directory)) ?? true);
  }

  /** Whether it is known that there is nothing at a stream's directory: false while its shard has not been listed. */
  lacks(directory: string): boolean {
    return this.#shards.get(dirname(directory))?.mayHave(basename(directory)) === false;
  }

  /** A stream's directory may be there from now on. */
  add(directory: string): void {
    const shard = dirname(directory);
    const name = basename(directory);
    this.#listings.get(shard)?.added.push(name);
    const filter = this.#shards.get(shard);
    filter?.add(name);
    if (filter?.isCrowded === true) this.#shards.delete(shard);
  }

  #startListing(shard: string): Listing {
    const added: string[] = [];
    const filter = this.#list(shard, added).finally(() => this.#listings.delete(shard));
    const listing = { filter, added };
    this.#listings.set(shard, listing);
    return listing;
  }

  async #list(shard: string, added: readonly string[]): Promise<NameFilter | null> {
    let filter: NameFilter | null = null;
    try {
      const listed = await this.#files.list(shard);
      filter = new NameFilter([...listed, ...added]);
    } catch (error) {
      if (!isPathFault(error)) throw error;
    }
    this.#shards.set(shard, filter);
    return filter;
  }
}
