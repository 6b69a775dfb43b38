import { join } from "node:path";
import type { Retry } from "../../../ops/retry.js";
import type { EngineParts } from "../disk/engine-state.js";
import { errorCode, isDiskFull, isPassing } from "../disk/files.js";
import type { FileStream } from "../memory/file-stream.js";
import type { SegmentPool } from "./segment-pool.js";
import { Turns } from "../../../ops/turns.js";
import type { UnsyncedShards } from "./unsynced-shards.js";

/** Directories moved to the trash at once: thousands that expire together must not crowd out the journal. */
const MOVES_AT_ONCE = 2;
/** How soon those are tried again that can't be moved because too many files are open, or the disk is full. */
const RETRY_MS = 100;

/** What is known of a directory that is to go. */
interface Found {
  /**
   * The journal does not know it as deleted or created: it must not come back without its sidecar, as it would look
   * like a stream that lost it.
   */
  readonly isUnborn?: boolean;
  /** There may be none. Only for a start, which has made sure of the trash. */
  readonly mayBeMissing?: boolean;
}

/** Gets deleted streams out of the way by a rename, which frees the name, and removes their files after it. */
export class Trash {
  readonly #parts: EngineParts;
  readonly #pool: SegmentPool;
  readonly #shards: UnsyncedShards;
  /** Moves to come or under way, by name: a new stream of the name touches no file before they are done. */
  readonly #moving = new Map<string, Promise<void>>();
  readonly #moveTurns = new Turns(MOVES_AT_ONCE);
  readonly #moves = new WeakMap<FileStream, Promise<void>>();
  readonly #retry: Retry;
  #emptying: Promise<void> = Promise.resolve();

  constructor(parts: EngineParts, pool: SegmentPool, shards: UnsyncedShards) {
    this.#parts = parts;
    this.#pool = pool;
    this.#shards = shards;
    this.#retry = parts.state.retry();
  }

  /** Takes the files of a stream that is deleted, durably. */
  take(stream: FileStream): void {
    const moved = this.#moveAfter(stream, this.vacated(stream.name));
    this.#moves.set(stream, moved);
    this.#moving.set(stream.name, moved);
    const done = (): void => {
      if (this.#moving.get(stream.name) === moved) this.#moving.delete(stream.name);
    };
    moved.then(done, (error: Error) => {
      // The name stays taken: what is in the directory must never be found again, nor mixed with what comes after it.
      // What passes is given up only when all ends: the journal keeps the deletion for the next start.
      if (!isPassing(error)) this.#parts.state.fail(error);
    });
  }

  /** Whether the directory of a deleted stream of this name may still be in its place. */
  isVacating(name: string): boolean {
    return this.#moving.has(name);
  }

  /**
   * Resolves when no deleted stream's directory is in the way of the name any more, and rejects when one could not be
   * moved; `null` where there is none.
   */
  vacated(name: string): Promise<void> | null {
    return this.#moving.get(name) ?? null;
  }

  /** Resolves when the stream's directory is out of its place; rejects when it could not be moved. */
  removed(stream: FileStream): Promise<void> {
    return this.#moves.get(stream) ?? Promise.resolve();
  }

  /** Moves a directory that belongs to no stream out of the way. */
  async discard(
    directory: string,
    label: string,
    { isUnborn = false, mayBeMissing = false }: Found = {},
  ): Promise<void> {
    const { files, layout } = this.#parts;
    const target = join(layout.trash, label);
    let isMoved = true;
    try {
      await this.#moveTo(directory, target, mayBeMissing);
    } catch (error) {
      isMoved = false;
      // Removing it needs no room.
      if (isDiskFull(error)) await files.removeTree(directory);
      else if (errorCode(error) !== "ENOENT") throw error;
    }
    // Also where there was none.
    this.gone(directory);
    if (isUnborn) await files.syncDirectory(layout.shard(directory));
    if (isMoved) this.#empty(target);
  }

  /** Notes a directory that is not there: a process that was killed may have moved it, and not yet permanently. */
  gone(directory: string): void {
    this.#shards.note(directory);
  }

  /** Removes a leftover only when the rename meets it: recovery discards thousands of directories that never were. */
  async #moveTo(directory: string, target: string, mayBeMissing: boolean): Promise<void> {
    const { files, layout } = this.#parts;
    try {
      await files.rename(directory, target);
    } catch (error) {
      const code = errorCode(error);
      // The directory is missing, or the trash is: only the first means that nothing has to go.
      if (code === "ENOENT" && !mayBeMissing) await files.makeDirectory(layout.trash);
      else if (["ENOTEMPTY", "EEXIST"].includes(code)) await files.removeTree(target);
      else throw error;
      await files.rename(directory, target);
    }
  }

  /** Removes what an earlier run left in the trash, in the background. */
  async emptyAll(): Promise<void> {
    const { files, layout } = this.#parts;
    // A process that was killed may have moved them here, and that may not be permanent yet.
    await files.syncDirectory(layout.trash);
    for (const label of await files.list(layout.trash)) this.#empty(join(layout.trash, label));
  }

  /** Resolves when the moves and the removal that are under way have ended, once the engine is over. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#moving.values());
    await this.#emptying;
  }

  /** The move before it, and file operations of the stream that are under way, end first. */
  async #moveAfter(stream: FileStream, before: Promise<void> | null): Promise<void> {
    // What could not be moved is still in its place, and so is its name taken.
    await before;
    await Promise.allSettled([stream.disk.work]);
    for (let hasFailed = false; !(await this.#isMoved(stream, hasFailed)); hasFailed = true)
      await this.#retry.wait(RETRY_MS);
  }

  /** Moves the stream's directory; false where that fails for a reason that passes, and is to be tried again. */
  async #isMoved(stream: FileStream, hasFailed: boolean): Promise<boolean> {
    try {
      await this.#moveTurns.run(() => this.#move(stream));
      // What was moved before is no longer found there.
      if (hasFailed) this.#empty(join(this.#parts.layout.trash, stream.id));
      return true;
    } catch (error) {
      const { state, log } = this.#parts;
      if (!state.isRunning || !(error instanceof Error) || !isPassing(error)) throw error;
      if (!hasFailed)
        log.warn("a deleted stream's files can't be moved now", { stream: stream.name, fault: error.message });
      state.emit("blocked", error);
      return false;
    }
  }

  async #move(stream: FileStream): Promise<void> {
    await this.#pool.dropIn(stream.directory);
    if (stream.disk.hasDirectory) await this.discard(stream.directory, stream.id, { isUnborn: !stream.created });
  }

  /** One at a time: removing a large stream must not crowd out the journal. */
  #empty(path: string): void {
    this.#emptying = this.#emptying.then(async () => {
      if (this.#parts.state.isOver) return;
      try {
        await this.#parts.files.removeTree(path);
      } catch (error) {
        this.#parts.log.warn("a deleted stream's files could not be removed yet", { path, fault: String(error) });
      }
    });
  }
}
