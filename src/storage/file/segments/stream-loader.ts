import { DamagedStreamError, StorageBusyError, type MaybePromise } from "../../storage.js";
import { readSidecar } from "../directory/catalog.js";
import type { Damage } from "./damage-log.js";
import { FileStream } from "../memory/file-stream.js";
import { isPassing, type Files } from "../disk/files.js";
import type { Layout } from "../format/layout.js";
import type { Sidecar } from "../format/sidecar.js";
import { StreamDirectories } from "../directory/stream-directories.js";
import type { Trash } from "./trash.js";

/** What a loader works with. */
export interface StreamLoaderOptions {
  readonly files: Files;
  readonly layout: Layout;
  /** The streams in memory, by name. */
  readonly streams: Map<string, FileStream>;
  /** Brings a stream to where the journal left it, if the journal goes on with it and nobody has done so since the start. */
  readonly openJournaled: (name: string) => Promise<FileStream | null>;
  readonly trash: Trash;
  readonly damage: Damage;
  /** The journal's last batch. */
  readonly lastBatch: () => number;
  /** Whether the disk has failed: then nothing is removed. */
  readonly hasFailed: () => boolean;
}

interface Load {
  /** A stream of the name left memory meanwhile: what was read may be older than what it left behind. */
  isStale: boolean;
  readonly found: Promise<FileStream | null>;
}

/** Brings streams from their own files into memory, and knows when they leave it. */
export class StreamLoader {
  readonly #options: StreamLoaderOptions;
  readonly #directories: StreamDirectories;
  /** Under way, by name. */
  readonly #loads = new Map<string, Load>();

  constructor(options: StreamLoaderOptions) {
    this.#options = options;
    this.#directories = new StreamDirectories(options);
  }

  /**
   * Whether there is certainly no stream of this name, but for one that waits in the journal. One that is being opened
   * has left the journal's list and is not in memory yet.
   */
  lacks(name: string): boolean {
    const { streams, layout } = this.#options;
    return !streams.has(name) && !this.#loads.has(name) && this.#directories.lacks(layout.streamDirectory(name));
  }

  /** The stream of this name, from memory or from disk; `null` when there is none. Throws DamagedStreamError and StorageBusyError. */
  async find(name: string): Promise<FileStream | null> {
    return this.#options.streams.get(name) ?? (this.#loads.get(name) ?? this.#begin(name)).found;
  }

  /** The stream is gone, or its files have all of it: it is no longer in memory. */
  leave(stream: FileStream): void {
    const { streams } = this.#options;
    const { name } = stream;
    const load = this.#loads.get(name);
    if (load !== undefined) load.isStale = true;
    this.#directories.add(stream.directory);
    if (streams.get(name) === stream) streams.delete(name);
  }

  #begin(name: string): Load {
    const load = { isStale: false, found: this.#load(name).finally(() => this.#loads.delete(name)) };
    this.#loads.set(name, load);
    return load;
  }

  async #load(name: string): Promise<FileStream | null> {
    const { streams, openJournaled } = this.#options;
    const journaled = await openJournaled(name).catch((error: unknown) => {
      throw isPassing(error) ? new StorageBusyError(`the stream ${JSON.stringify(name)} can't be opened now`, { cause: error }) : error;
    });
    if (journaled === null) return this.#loadFiles(name);
    streams.set(name, journaled);
    return journaled;
  }

  async #loadFiles(name: string): Promise<FileStream | null> {
    const { files, layout, streams, trash, lastBatch } = this.#options;
    const directory = layout.streamDirectory(name);
    for (;;) {
      if (trash.isVacating(name)) return null;
      const read = (await this.#mayHave(directory)) ? await readSidecar(files, name, directory, lastBatch()) : null;
      const known = streams.get(name);
      if (known !== undefined) return known;
      const load = this.#loads.get(name);
      if (load?.isStale !== true) return this.#take(directory, read);
      load.isStale = false;
    }
  }

  /** Where the disk does not say so of all, it may of one. */
  #mayHave(directory: string): MaybePromise<boolean> {
    const answer = this.#directories.mayHave(directory);
    return answer instanceof Promise ? answer.catch(() => true) : answer;
  }

  async #take(directory: string, read: Sidecar | DamagedStreamError | null): Promise<FileStream | null> {
    const { streams, trash, damage, hasFailed } = this.#options;
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
