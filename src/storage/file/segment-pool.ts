import { dirname } from "node:path";
import type { Files, OpenFile } from "./files.js";

interface PooledFile {
  readonly directory: string;
  readonly opening: Promise<OpenFile>;
  users: number;
  /** No longer in the pool: the last user closes it. */
  dropped: boolean;
}

type PoolMode = "read" | "write";

/** Most segment files open at once when none is in use beyond it. */
const MAX_OPEN_FILES = 256;

/** Open segment files, shared and reused; the least recently used are closed. */
export class SegmentPool {
  readonly #files: Files;
  readonly #maxOpenFiles: number;
  /** Least recently used first. */
  readonly #open = new Map<string, PooledFile>();

  constructor(files: Files, maxOpenFiles = MAX_OPEN_FILES) {
    this.#files = files;
    this.#maxOpenFiles = maxOpenFiles;
  }

  /** Runs `work` with the file at `path` open; `read` needs it to exist. */
  async use<T>(path: string, mode: PoolMode, work: (file: OpenFile) => Promise<T>): Promise<T> {
    const key = this.#keyFor(path, mode);
    const pooled = this.#open.get(key) ?? { directory: dirname(path), opening: this.#files.open(path, mode), users: 0, dropped: false };
    this.#open.delete(key);
    this.#open.set(key, pooled);
    pooled.users += 1;
    try {
      return await work(await pooled.opening);
    } catch (error) {
      // A file that did not open is not kept; the next use tries again.
      await pooled.opening.catch(() => {
        if (this.#open.get(key) === pooled) this.#open.delete(key);
        pooled.dropped = false;
      });
      throw error;
    } finally {
      pooled.users -= 1;
      if (pooled.dropped) await closeUnused(pooled);
      if (this.#open.size > this.#maxOpenFiles) await this.#closeExcess();
    }
  }

  /** Closes the files in `directory`, once nobody uses them: its next files of these names are others. */
  async dropIn(directory: string): Promise<void> {
    for (const [key, pooled] of this.#open) if (pooled.directory === directory) await this.#close(key);
  }

  async closeAll(): Promise<void> {
    for (const key of [...this.#open.keys()]) await this.#close(key);
  }

  /** A file that is open for writing serves reads too. */
  #keyFor(path: string, mode: PoolMode): string {
    const writing = `write ${path}`;
    return mode === "write" || this.#open.has(writing) ? writing : `read ${path}`;
  }

  async #closeExcess(): Promise<void> {
    for (const [key, pooled] of this.#open) {
      if (this.#open.size <= this.#maxOpenFiles) return;
      if (pooled.users === 0) await this.#close(key);
    }
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
