import { DamagedStreamError } from "../storage.js";
import { readSidecar } from "./catalog.js";
import type { Damage } from "./damage.js";
import { FileStream } from "./file-stream.js";
import type { Files } from "./files.js";
import type { Layout } from "./layout.js";
import type { Trash } from "./trash.js";

/** What a loader works with. */
export interface StreamLoaderOptions {
  readonly files: Files;
  readonly layout: Layout;
  /** The streams in memory, by name. */
  readonly streams: Map<string, FileStream>;
  readonly trash: Trash;
  readonly damage: Damage;
  /** The journal's last batch. */
  readonly lastBatch: () => number;
  /** Whether the disk has failed: then nothing is removed. */
  readonly hasFailed: () => boolean;
}

/** Brings streams from their own files into memory. */
export class StreamLoader {
  readonly #options: StreamLoaderOptions;

  constructor(options: StreamLoaderOptions) {
    this.#options = options;
  }

  /** The stream of this name, from memory or from disk; `null` when there is none. Throws DamagedStreamError and StorageBusyError. */
  async find(name: string): Promise<FileStream | null> {
    return this.#options.streams.get(name) ?? this.#load(name);
  }

  async #load(name: string): Promise<FileStream | null> {
    const { files, layout, streams, trash, damage, lastBatch, hasFailed } = this.#options;
    if (trash.isVacating(name)) return null;
    const directory = layout.streamDirectory(name);
    const read = await readSidecar(files, name, directory, lastBatch());
    const known = streams.get(name);
    if (known !== undefined) return known;
    if (read === null) return null;
    if (read instanceof DamagedStreamError) throw damage.told(read);
    if (read.claimed) {
      // Its creation never became durable, or the next start shows that it did.
      if (!hasFailed()) await trash.discard(directory, `${read.id}-unborn`, true);
      return null;
    }
    const stream = new FileStream(read, directory, read);
    stream.created = true;
    streams.set(stream.name, stream);
    return stream;
  }
}
