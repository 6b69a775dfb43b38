import { EventEmitter } from "node:events";
import { DamagedStreamError, StorageBusyError, type MaybePromise } from "../../storage.js";
import { readSidecar } from "../directory/catalog.js";
import type { DamageLog } from "./damage-log.js";
import { FileStream } from "../memory/file-stream.js";
import type { Restores } from "../memory/restores.js";
import { isPassing } from "../disk/files.js";
import type { Sidecar } from "../format/sidecar.js";
import { StreamDirectories } from "../directory/stream-directories.js";
import type { StreamFiles } from "./stream-files.js";

/** Streams that the journal goes on with, and that nobody has opened since the start. */
interface UnopenedStreams {
  has(name: string): boolean;
  /** Brings one to where the journal left it; `null` where it is none of them. */
  open(name: string): Promise<FileStream | null>;
}

/** Where a loader finds streams, and who hears of those that it can't bring. */
export interface StreamLoaderOptions {
  /** The streams in memory, by name. */
  readonly streams: Map<string, FileStream>;
  readonly unopened: UnopenedStreams;
  readonly damageLog: DamageLog;
  readonly journal: { readonly lastBatch: number };
  readonly restores: Restores;
}

interface LoaderEvents {
  /** A stream is where the journal left it, and in memory. */
  opened: [stream: FileStream];
}

interface Load {
  /** A stream of the name left memory meanwhile: what was read may be older than what it left behind. */
  isStale: boolean;
  readonly found: Promise<FileStream | null>;
}

/** Brings streams from their own files into memory, and knows when they leave it. */
export class StreamLoader extends EventEmitter<LoaderEvents> {
  readonly #parts: StreamFiles;
  readonly #options: StreamLoaderOptions;
  readonly #directories: StreamDirectories;
  /** Under way, by name. */
  readonly #loads = new Map<string, Load>();

  constructor(parts: StreamFiles, options: StreamLoaderOptions) {
    super();
    this.#parts = parts;
    this.#options = options;
    this.#directories = new StreamDirectories(parts);
  }

  /** Whether there is certainly no such stream. One that is being opened is neither unopened nor in memory yet. */
  lacks(name: string): boolean {
    const { streams, unopened } = this.#options;
    if (streams.has(name) || this.#loads.has(name)) return false;
    return this.#directories.lacks(this.#parts.layout.streamDirectory(name)) && !unopened.has(name);
  }

  /** The stream, from memory or disk; `null` without one. Throws DamagedStreamError and StorageBusyError. */
  async find(name: string): Promise<FileStream | null> {
    return this.#options.streams.get(name) ?? (this.#loads.get(name) ?? this.#startLoad(name)).found;
  }

  /** The stream is in memory. */
  enter(stream: FileStream): void {
    const { streams, restores } = this.#options;
    stream.restores = restores;
    streams.set(stream.name, stream);
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

  #startLoad(name: string): Load {
    const load = { isStale: false, found: this.#load(name).finally(() => this.#loads.delete(name)) };
    this.#loads.set(name, load);
    return load;
  }

  async #load(name: string): Promise<FileStream | null> {
    const { unopened } = this.#options;
    const journaled = await unopened.open(name).catch((error: unknown) => {
      throw isPassing(error)
        ? new StorageBusyError(`the stream ${JSON.stringify(name)} can't be opened now`, { cause: error })
        : error;
    });
    if (journaled === null) return this.#loadFiles(name);
    journaled.unreserve();
    this.enter(journaled);
    this.emit("opened", journaled);
    return journaled;
  }

  async #loadFiles(name: string): Promise<FileStream | null> {
    const { files, layout, trash } = this.#parts;
    const { streams, journal } = this.#options;
    const directory = layout.streamDirectory(name);
    for (;;) {
      if (trash.isVacating(name)) return null;
      const read = (await this.#mayHave(directory))
        ? await readSidecar(files, name, directory, journal.lastBatch)
        : null;
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
    const { state, trash } = this.#parts;
    const { damageLog } = this.#options;
    if (read === null) return null;
    if (read instanceof DamagedStreamError) throw damageLog.told(read);
    if (read.claimed) {
      // Its creation never became durable, or the next start shows that it did.
      if (state.failure === null) await trash.discard(directory, `${read.id}-unborn`, { isUnborn: true });
      return null;
    }
    const stream = new FileStream(read, directory, read);
    stream.created = true;
    this.enter(stream);
    return stream;
  }
}
