import { join } from "node:path";
import { StorageBusyError } from "../../storage.js";
import type { EngineParts } from "../disk/engine-state.js";
import { errorCode, isBusy, isSystemError, readWhole } from "../disk/files.js";
import { coveredSidecarPath, isShardName, segmentStartOf, sidecarPath } from "../format/layout.js";
import { isNotice, isWhole, listsForks, nameIn, originIn } from "../format/sidecar.js";
import type { Trash } from "../segments/trash.js";

/** Where they are looked for. */
export interface ForksPlace extends Pick<EngineParts, "files" | "layout" | "state"> {
  readonly trash: Pick<Trash, "isVacating">;
  /** Whether a stream of this name is in memory, or waits for that with its records: what it is, is known. */
  readonly isKnown: (name: string) => boolean;
}

/** What the sidecars of a directory say of the forks of one stream. */
export interface ForksOnDisk {
  readonly names: readonly string[];
  /** Whether the stream's own sidecar, damaged or not, lists forks; `null` where nobody can tell. */
  readonly isSource: boolean | null;
  /** The first sidecar that can't be read, which may name the stream as its source; `null` where all can be. */
  readonly unread: string | null;
  /** The first that says nothing of a source: only the source's own list can tell of such a fork. */
  readonly silent: string | null;
}

const NO_FILE = new Set(["EISDIR", "ELOOP", "ENXIO", "ENAMETOOLONG"]);

/** What has been found until now. */
type Finding = { -readonly [Member in keyof ForksOnDisk]: ForksOnDisk[Member] } & { readonly names: string[] };

/** Streams whose forks are looked for together. */
interface Search {
  readonly sources: Map<string, Finding>;
  readonly ended: Promise<void>;
}

/**
 * Finds forks by reading all sidecars, as long as that takes. There is one search at a time: all who ask while it is
 * under way share the next.
 */
export class ForkSearch {
  readonly #place: ForksPlace;
  #next: Search | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(place: ForksPlace) {
    this.#place = place;
  }

  /**
   * The names of the streams whose sidecars, damaged or not, or notices say that they were forked from one of the name
   * `source`, but for those that are deleted; and what else may be its fork. Throws {@link StorageBusyError}.
   */
  async forksOf(source: string): Promise<ForksOnDisk> {
    const { sources, ended } = (this.#next ??= this.#begin());
    const found = sources.get(source) ?? { names: [], isSource: null, unread: null, silent: null };
    sources.set(source, found);
    await ended;
    return found;
  }

  #begin(): Search {
    const sources: Search["sources"] = new Map();
    const ended = this.#last.then(() => {
      this.#next = null;
      return this.#search(sources);
    });
    this.#last = Promise.allSettled([ended]);
    return { sources, ended };
  }

  async #search(sources: Search["sources"]): Promise<void> {
    const { files, layout, state } = this.#place;
    const own = new Map([...sources].map(([name, found]) => [layout.streamDirectory(name), found]));
    const stated = new Map([...sources].map(([name, found]) => [JSON.stringify(name), found]));
    for (const shard of (await listed(files.list(layout.streams))).filter(isShardName)) {
      const entries = await listed(files.list(join(layout.streams, shard)));
      for (const directory of entries.map((entry) => join(layout.streams, shard, entry))) {
        if (!state.isRunning) throw new StorageBusyError("the server ends, or its disk has failed");
        await this.#look(directory, stated, own.get(directory) ?? null);
      }
    }
  }

  /** Looks at one stream's sidecar; `own` is the finding of a stream that lies there. */
  async #look(directory: string, stated: ReadonlyMap<string, Finding>, own: Finding | null): Promise<void> {
    const { files, layout, trash } = this.#place;
    const path = sidecarPath(directory);
    // A name that is too long for a directory is in the sidecar alone.
    const called = layout.nameOf(directory);
    if (called !== null && trash.isVacating(called)) return;
    const bytes = await readWhole(files, path).catch(ifUnreadable);
    if (bytes === "unreadable") return noteDoubt("unread");
    if (bytes === "none") return noteDoubt("silent");
    if (bytes === null) return (await this.#isUnknown(directory, called)) ? noteDoubt("silent") : undefined;
    if (own !== null) own.isSource = await this.#listsForks(directory, bytes);
    const origin = originIn(bytes);
    const found = typeof origin?.source === "string" ? stated.get(origin.source) : undefined;
    // A wrong byte in the name of the source leaves nothing that can be relied on.
    if (origin === null || (found === undefined && origin.source !== null && !isWhole(bytes)))
      return noteDoubt("silent");
    if (found === undefined || found === own) return;
    const name = nameIn(bytes);
    if (!trash.isVacating(name)) found.names.push(name);

    function noteDoubt(doubt: "unread" | "silent"): void {
      for (const other of stated.values()) if (other !== own) other[doubt] ??= path;
    }
  }

  /** A notice stands in the place of a sidecar that lacks records: there may be forks since, too. */
  async #listsForks(directory: string, bytes: Buffer): Promise<boolean | null> {
    if (!isNotice(bytes)) return listsForks(bytes);
    const covered = await readWhole(this.#place.files, coveredSidecarPath(directory)).catch(ifUnreadable);
    return covered instanceof Buffer && listsForks(covered) === true ? true : null;
  }

  /** Whether a directory without a sidecar has a stream that nobody knows: a new one gets its sidecar last. */
  async #isUnknown(directory: string, name: string | null): Promise<boolean> {
    const { files, isKnown } = this.#place;
    if (name !== null && isKnown(name)) return false;
    const entries = await listed(files.list(directory));
    return entries.some((entry) => segmentStartOf(entry) !== null);
  }
}

/** What is no directory holds no stream; what can't be listed may hold one. */
function listed(listing: Promise<string[]>): Promise<string[]> {
  return listing.catch((error: unknown) => {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return [];
    throw asBusy(error);
  });
}

/** `none`: what is there is no file, whoever reads it. */
function ifUnreadable(error: unknown): "unreadable" | "none" {
  if (isBusy(error) || !isSystemError(error)) throw asBusy(error);
  return NO_FILE.has(errorCode(error)) ? "none" : "unreadable";
}

function asBusy(error: unknown): unknown {
  if (!isSystemError(error)) return error;
  return new StorageBusyError("the streams' files can't be looked through now", { cause: error });
}
