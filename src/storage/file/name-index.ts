import type { EventEmitter } from "node:events";
import { nextTurn } from "../../ops/turns.js";
import { ALL_NAMES, type NameRange } from "../../protocol/names/name-range.js";
import { poolThreads } from "./disk/files.js";
import type { DataDirectory } from "./directory/directory.js";
import type { LoggedNames, NameLog } from "./directory/name-log.js";
import { namesOnDisk } from "./directory/stream-names.js";
import { FirstNames, mergedNames, orderedRuns } from "./memory/ordered-names.js";
import { ListedNames } from "../listed-names.js";
import { bytesOfName } from "../sorted-names.js";
import { StorageBusyError, type MatchingNames, type StoredStream, type StreamEvents } from "../storage.js";

/** Who may wait for others to have the directories read: that takes seconds each, also for those who have left. */
const MAX_WAITING = 16;

/** What the engine has to say about names. */
export interface NameIndexOptions extends Pick<DataDirectory, "files" | "layout"> {
  /** Streams in memory, by name. */
  readonly streams: ReadonlyMap<string, StoredStream>;
  /** Those that the journal goes on with and nobody has opened. */
  readonly unopened: { names(): Iterable<string> };
  readonly events: EventEmitter<StreamEvents>;
  readonly nameLog: Pick<NameLog, "names" | "replace">;
  /** The names may take so much memory. */
  readonly maxBytes: number;
}

/** Names that follow the engine's events. */
interface Followed {
  readonly names: ListedNames;
  release(): void;
}

/** What the log of names had, and what was made since: until the directories are read. */
interface Early {
  readonly logged: LoggedNames;
  readonly since: Set<string>;
  release(): void;
}

/**
 * The names of all streams in order, also some of streams that are gone. They are in memory once they are asked for;
 * those of too many streams stay on disk, and each time the directories are read.
 */
export class NameIndex {
  readonly #options: NameIndexOptions;
  #early: Promise<Early | null> | null = null;
  #coming: Promise<void> | null = null;
  #followed: Followed | null = null;
  #isTooLarge = false;
  /** Of those who have the directories read, one at a time; and how many there are. */
  #last: Promise<unknown> = Promise.resolve();
  #reading = 0;

  constructor(options: NameIndexOptions) {
    this.#options = options;
  }

  /** The first names of a range in order, at most `count`. Throws {@link StorageBusyError}. */
  async slice(range: NameRange, count: number): Promise<readonly string[]> {
    const early = await this.#begun();
    if (early !== null) return firstOf(early, range, count);
    return this.#followed?.names.slice(range, count) ?? this.#onDisk(range, count);
  }

  /** The names that these patterns match, `null` for all; `null` while not all names are in memory. */
  async matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null> {
    await this.#begun();
    return this.#followed?.names.matching(patterns) ?? null;
  }

  /** Has the names read: until that is done, what is known of them before, if anything is. */
  async #begun(): Promise<Early | null> {
    if (this.#followed !== null || this.#isTooLarge) return null;
    const early = await (this.#early ??= this.#readLog());
    // The log may lack what somebody has put there while no server ran.
    this.#coming ??= this.#begin(early === null ? poolThreads() : 1).finally(() => (this.#coming = null));
    if (early === null || this.#followed !== null) {
      await this.#coming;
      return null;
    }
    // Who asks next has them read again.
    this.#coming.catch(() => undefined);
    return early;
  }

  async #readLog(): Promise<Early | null> {
    const { events, nameLog } = this.#options;
    const since = new Set<string>();
    const created = ({ name }: StoredStream): void => void since.add(name);
    const release = (): void => void events.off("created", created);
    events.on("created", created);
    const logged = await nameLog.names();
    if (logged !== null) return { logged, since, release };
    release();
    return null;
  }

  async #begin(atOnce: number): Promise<void> {
    this.#followed = await this.#follow(atOnce);
    const early = await this.#early;
    early?.release();
    this.#early = null;
    if (this.#followed === null) this.#isTooLarge = true;
    else void this.#options.nameLog.replace(() => this.#followed?.names.slice(ALL_NAMES, Infinity) ?? null);
  }

  /** The names that are read from now on, with what becomes of them meanwhile and afterwards; `null` for too many. */
  async #follow(atOnce: number): Promise<Followed | null> {
    const { events, maxBytes } = this.#options;
    const changes: ((names: ListedNames) => void)[] = [];
    let names: ListedNames | null = null;
    const follow = (change: (names: ListedNames) => void): void =>
      void (names === null ? changes.push(change) : change(names));
    const created = ({ name }: StoredStream): void => {
      follow((all) => all.add(name));
      if (names !== null && names.bytes > maxBytes) this.#enlarge();
    };
    const deleted = (name: string): void => follow((all) => all.remove(name));
    const release = (): void => void events.off("created", created).off("deleted", deleted);
    events.on("created", created).on("deleted", deleted);
    try {
      const read = await this.#read(atOnce);
      if (read === null) {
        release();
        return null;
      }
      names = new ListedNames(read);
    } catch (error) {
      release();
      throw error;
    }
    // In the order in which they came: the last one is right.
    for (const change of changes) change(names);
    return { names, release };
  }

  #enlarge(): void {
    this.#followed?.release();
    this.#followed = null;
    this.#isTooLarge = true;
  }

  /** All names; `null` for too many. */
  async #read(atOnce: number): Promise<string[] | null> {
    const { maxBytes } = this.#options;
    const lists = await orderedRuns(await this.#inMemory());
    let bytes = 0;
    await namesOnDisk(this.#options, atOnce, (names) => {
      lists.push([...names]);
      for (const name of names) bytes += bytesOfName(name);
      return bytes <= maxBytes;
    });
    return bytes <= maxBytes ? mergedNames(lists) : null;
  }

  /** Streams that may have no directory yet. */
  async #inMemory(): Promise<string[]> {
    const { streams, unopened } = this.#options;
    // One that has just been opened comes from the ones to the others before the next turn.
    await nextTurn();
    return [...streams.keys(), ...unopened.names()];
  }

  /** Looks through all directories, and keeps no more than what is asked for. */
  #onDisk(range: NameRange, count: number): Promise<string[]> | string[] {
    if (count === 0) return [];
    if (this.#reading > MAX_WAITING) throw new StorageBusyError("too many wait for the directories to be read");
    this.#reading += 1;
    const run = this.#last.then(async () => {
      const first = new FirstNames(range, count);
      await first.lookAt(await this.#inMemory());
      await namesOnDisk(this.#options, 1, (names) => first.lookAt(names).then(() => true));
      return first.all;
    });
    // Whoever asked is told.
    this.#last = run.catch(() => undefined).then(() => (this.#reading -= 1));
    return run;
  }
}

/** The first of these names in a range, at most `count`. */
async function firstOf({ logged, since }: Early, range: NameRange, count: number): Promise<string[]> {
  const first = new FirstNames(range, count);
  for (const names of logged.saved) await first.lookAt(names.slice(range, count));
  await first.lookAt(logged.latest);
  await first.lookAt(since);
  return first.all;
}
