import { basename } from "node:path";
import { isPathFault, type Files } from "./files.js";
import type { Layout } from "./layout.js";

/** Which streams have a directory, as it was when one of the same shard was first asked for: one listing answers for hundreds. */
export class StreamDirectories {
  readonly #files: Files;
  readonly #layout: Layout;
  /** What is in each shard; `null` where that can't be told. */
  readonly #shards = new Map<string, Promise<ReadonlySet<string> | null>>();

  constructor({ files, layout }: { readonly files: Files; readonly layout: Layout }) {
    this.#files = files;
    this.#layout = layout;
  }

  /** Whether there may be something at a stream's directory: what can't be looked at may be there, and whoever uses it is told why it can't be. */
  async mayHave(directory: string): Promise<boolean> {
    const shard = this.#layout.shard(directory);
    let listing = this.#shards.get(shard);
    if (listing === undefined) this.#shards.set(shard, (listing = this.#list(shard)));
    return (await listing)?.has(basename(directory)) ?? true;
  }

  async #list(shard: string): Promise<ReadonlySet<string> | null> {
    try {
      return new Set(await this.#files.list(shard));
    } catch (error) {
      if (!isPathFault(error)) throw error;
      return null;
    }
  }
}
