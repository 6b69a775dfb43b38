import { dirname } from "node:path";
import { isBusy, type Files, type OpenFile } from "../disk/files.js";
import { openFilesLimit } from "../disk/open-files-limit.js";
import { Turns } from "../../../ops/turns.js";

interface PooledFile {
  readonly directory: string;
  readonly opening: Promise<OpenFile>;
  users: number;
  /** No longer in the pool: the last user closes it. */
  dropped: boolean;
}

type PoolMode = "read" | "write";

/** Most segment files open at once when none is in use beyond it; fewer where the process may have few open. */
const MAX_OPEN_FILES = 256;
/** The part of the process's limit that segments may take: connections and the journal need the rest. */
const SHARE_OF_LIMIT = 1 / 4;
/** Large segments compared with their checksums at once: that takes the CPU, and appends must not wait for it. */
const MAX_CHECKS = 1;

/**
 * How many uses a map of the pool serves before a new one takes its place. V8 keeps a map's outgrown tables linked:
 * once one of them is old, it holds whatever the map has later, until the next full collection.
 */
const USES_OF_A_MAP = 256;

/** Open segment files, shared and reused; the least recently used are closed. */
export class SegmentPool {
  /** Comparisons of large segments with their checksums, which take their turns. */
  readonly checks = new Turns(MAX_CHECKS);
  readonly #files: Files;
  #maxOpenFiles: number;
  /** Least recently used first. */
  #open = new Map<string, PooledFile>();
  #uses = 0;
  /** Uses that are under way. */
  #users = 0;
  #onUnused: (() => void) | null = null;

  constructor(files: Files, maxOpenFiles = MAX_OPEN_FILES) {
    this.#files = files;
    this.#maxOpenFiles = maxOpenFiles;
  }

  /**
   * Takes no more than its share of the files that the process may have open, where the system tells how many; and
   * makes way where what must be written finds none left. A file that can't be closed for that is a `fault`.
   */
  async respectLimit(fault: (error: unknown) => void): Promise<void> {
    const limit = await openFilesLimit(this.#files);
    this.#maxOpenFiles = Math.min(this.#maxOpenFiles, Math.floor(limit * SHARE_OF_LIMIT));
    this.#files.reserve?.fill(limit, () => void this.#closeDownTo(0).catch(fault));
  }

  /** Runs `work` with the file at `path` open; `read` needs it to exist. */
  async use<T>(path: string, mode: PoolMode, work: (file: OpenFile) => Promise<T>): Promise<T> {
    this.#uses += 1;
    this.#users += 1;
    if (this.#uses % USES_OF_A_MAP === 0) this.#open = new Map(this.#open);
    const key = this.#keyFor(path, mode);
    const pooled = this.#open.get(key) ?? {
      directory: dirname(path),
      opening: this.#openFile(path, mode),
      users: 0,
      dropped: false,
    };
    this.#open.delete(key);
    this.#open.set(key, pooled);
    pooled.users += 1;
    try {
      return await work(await pooled.opening);
    } catch (error) {
      if (await hasOpened(pooled)) throw error;
      // A file that did not open is not kept; the next use tries again.
      if (this.#open.get(key) === pooled) this.#open.delete(key);
      pooled.dropped = false;
      // Who only reads needs nothing of what there was too little of, or no right to.
      if (mode === "read" && key === keyOf(path, "write")) return await this.use(path, mode, work);
      throw error;
    } finally {
      try {
        pooled.users -= 1;
        if (pooled.dropped) await closeUnused(pooled);
        if (this.#open.size > this.#maxOpenFiles) await this.#closeDownTo(this.#maxOpenFiles);
      } finally {
        this.#users -= 1;
        if (this.#users === 0) this.#onUnused?.();
      }
    }
  }

  /** Closes the file at `path`, once nobody uses it. */
  async drop(path: string): Promise<void> {
    for (const mode of ["read", "write"] as const) await this.#close(keyOf(path, mode));
  }

  /** Closes the files in `directory`, once nobody uses them: its next files of these names are others. */
  async dropIn(directory: string): Promise<void> {
    const keysHere = (): string[] =>
      [...this.#open].flatMap(([key, pooled]) => (pooled.directory === directory ? [key] : []));
    // Again, for what somebody opens while the first are closed.
    for (let keys = keysHere(); keys.length > 0; keys = keysHere()) for (const key of keys) await this.#close(key);
  }

  /**
   * Closes all files, also where that fails for one, and ends when nobody uses any: what is written later would be in
   * another engine's files. Nothing more is kept for what must be written.
   */
  async closeAll(): Promise<void> {
    const closing: Promise<void>[] = [];
    while (this.#users > 0 || this.#open.size > 0) {
      closing.push(...[...this.#open.keys()].map((key) => this.#close(key)));
      await Promise.allSettled(closing);
      if (this.#users > 0) await new Promise<void>((resolve) => (this.#onUnused = resolve));
    }
    this.#files.reserve?.release();
    await Promise.all(closing);
  }

  /** Where the process has too much open, what nobody uses here makes room. */
  async #openFile(path: string, mode: PoolMode): Promise<OpenFile> {
    try {
      return await this.#files.open(path, mode);
    } catch (error) {
      if (!isBusy(error) || !(await this.#closeDownTo(0))) throw error;
      return this.#files.open(path, mode);
    }
  }

  /** A file that is open for writing serves reads too. */
  #keyFor(path: string, mode: PoolMode): string {
    const writing = keyOf(path, "write");
    return mode === "write" || this.#open.has(writing) ? writing : keyOf(path, "read");
  }

  /** Closes what nobody uses until so many are left; returns whether that was any. */
  async #closeDownTo(count: number): Promise<boolean> {
    const before = this.#open.size;
    for (const [key, pooled] of this.#open) {
      if (this.#open.size <= count) break;
      if (pooled.users === 0) await this.#close(key);
    }
    return this.#open.size < before;
  }

  async #close(key: string): Promise<void> {
    const pooled = this.#open.get(key);
    if (pooled === undefined) return;
    this.#open.delete(key);
    pooled.dropped = true;
    await closeUnused(pooled);
  }
}

async function closeUnused(pooled: PooledFile): Promise<void> {
  if (pooled.users > 0) return;
  const file = await pooled.opening;
  await file.close();
}

function keyOf(path: string, mode: PoolMode): string {
  return `${mode} ${path}`;
}

function hasOpened({ opening }: PooledFile): Promise<boolean> {
  return opening.then(
    () => true,
    () => false,
  );
}
