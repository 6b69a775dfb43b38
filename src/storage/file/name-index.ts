import type { EventEmitter } from "node:events";
import type { Log } from "../../ops/log.js";
import { poolThreads } from "./disk/files.js";
import type { StoredStream, StreamEvents } from "../storage.js";
import type { DataDirectory } from "./directory/directory.js";
import { saveNames, takeSavedNames } from "./directory/saved-names.js";
import { namesOnDisk } from "./directory/stream-names.js";
import { mergedNames, orderedRuns } from "./memory/ordered-names.js";
import { SortedNames } from "../sorted-names.js";

/** What the engine has to say about names. */
export interface NameIndexOptions extends DataDirectory {
  /** Streams in memory, by name. */
  readonly streams: ReadonlyMap<string, StoredStream>;
  /** Those that the journal goes on with and nobody has opened. */
  readonly unopened: { names(): Iterable<string> };
  readonly journal: { readonly lastBatch: number };
  readonly events: EventEmitter<StreamEvents>;
  readonly log: Pick<Log, "debug">;
  /** So many names are worth saving. */
  readonly savedFrom?: number | undefined;
}

/** Fewer names are read from the directories within some ten milliseconds. */
const SAVED_FROM = 1000;

/** Names that follow the engine's events. */
interface Followed {
  readonly names: SortedNames;
  release(): void;
}

/** The names of all streams in order, in memory once they are asked for; also some of streams that are gone. */
export class NameIndex {
  readonly #options: NameIndexOptions;
  #coming: Promise<void> | null = null;
  #followed: Followed | null = null;

  constructor(options: NameIndexOptions) {
    this.#options = options;
  }

  /** Up to `count` names in order, from the first that is at `from` or after it. */
  async slice(from: string, count: number): Promise<readonly string[]> {
    if (this.#followed === null) {
      this.#coming ??= this.#begin().finally(() => (this.#coming = null));
      await this.#coming;
    }
    return this.#followed?.names.slice(from, count) ?? [];
  }

  /** Saves the names for the next start: the engine has ended, and nothing failed. Without them that reads the disk. */
  async save(): Promise<void> {
    const { journal, log, savedFrom = SAVED_FROM } = this.#options;
    if (this.#followed === null || this.#followed.names.size < savedFrom) return;
    try {
      await saveNames(this.#options, journal.lastBatch, this.#followed.names.slice("", Infinity));
    } catch (error) {
      log.debug("the names were not saved", { fault: String(error) });
    }
  }

  async #begin(): Promise<void> {
    const { journal } = this.#options;
    // The engine's first batch holds nothing. Whatever came after the names were saved has a batch of its own.
    const saved = takeSavedNames(this.#options, journal.lastBatch - 1);
    this.#followed = await this.#follow(saved);
    if (this.#followed === null) {
      this.#followed = await this.#follow(this.#read(poolThreads()));
      return;
    }
    // Somebody may have put a directory there, or taken one away, while no server ran.
    void this.#follow(this.#read(1)).then(
      (read) => {
        this.#followed?.release();
        this.#followed = read;
      },
      () => undefined,
    );
  }

  /** The names that are read from now on, with what becomes of them meanwhile and afterwards. */
  async #follow(reading: Promise<readonly string[] | null>): Promise<Followed | null> {
    const { events } = this.#options;
    const changes: ((names: SortedNames) => void)[] = [];
    let names: SortedNames | null = null;
    const follow = (change: (names: SortedNames) => void): void =>
      void (names === null ? changes.push(change) : change(names));
    const created = ({ name }: StoredStream): void => follow((all) => all.add(name));
    const deleted = (name: string): void => follow((all) => all.remove(name));
    const release = (): void => void events.off("created", created).off("deleted", deleted);
    events.on("created", created).on("deleted", deleted);
    try {
      const read = await reading;
      if (read === null) {
        release();
        return null;
      }
      names = SortedNames.of(read);
    } catch (error) {
      release();
      throw error;
    }
    // In the order in which they came: the last one is right.
    for (const change of changes) change(names);
    return { names, release };
  }

  async #read(atOnce: number): Promise<string[]> {
    const { files, layout, streams, unopened } = this.#options;
    const inMemory = await orderedRuns([...streams.keys(), ...unopened.names()]);
    return mergedNames([...inMemory, ...(await namesOnDisk(files, layout, atOnce))]);
  }
}
