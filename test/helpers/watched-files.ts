import type { Socket } from "node:net";
import { constants as system } from "node:os";
import { systemFiles, type Files, type OpenFile, type OpenMode } from "../../src/storage/file/disk/files.js";
import type { Listener, Reach } from "../../src/storage/file/disk/sockets.js";

/** One call of storage to the file system; `bytes` is what a write brings. */
export interface Operation {
  readonly kind: keyof Files | keyof OpenFile;
  readonly path: string;
  readonly bytes: number;
}

/** Looks at an operation before it happens: an error fails it, a promise makes it wait. */
export type Gate = (operation: Operation) => Error | Promise<void> | undefined;

/** The path of a journal file, and that of a segment. */
export const JOURNAL = /\.journal$/;
export const SEGMENT = /\.seg$/;

/** Fails operations of these kinds on paths that match. */
export function failing(code: string, kinds: readonly string[], path: RegExp): Gate {
  return (operation) => (kinds.includes(operation.kind) && path.test(operation.path) ? diskError(code) : undefined);
}

/** What the system's error of this name has: its code, and its number where there is one. */
export function errorOf(code: string): { readonly code: string; readonly errno?: number } {
  const number = new Map(Object.entries(system.errno)).get(code);
  return number === undefined ? { code } : { code, errno: -number };
}

/** An error as node:fs gives it. */
export function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: as the test wants it`), errorOf(code));
}

/**
 * The 256 directories that a new data directory gets. Making, copying and removing them is most of the work of a test;
 * a stream's directory makes its own where it is missing.
 */
const SHARD = /[\\/]streams[\\/][0-9a-f]{2}$/;

/** Rounds of the event loop without a file operation after which storage is taken to be idle. */
export const QUIET_TURNS = 8;

/** A file system that tells what was done to it, and where a test can fail, hold up or stop everything. */
export class WatchedFiles implements Files {
  readonly operations: Operation[] = [];
  gate: Gate | null = null;
  readonly #inner: Files;
  #inFlight = 0;
  #frozen = false;

  constructor(inner: Files = systemFiles(false)) {
    this.#inner = inner;
  }

  /** How many operations of `kind` there were on paths that match. */
  count(kind: Operation["kind"], path: RegExp): number {
    return this.operations.filter((operation) => operation.kind === kind && path.test(operation.path)).length;
  }

  /** Holds the journal's next writes until the barrier opens. */
  holdJournal(): Barrier {
    const disk = new Barrier();
    this.gate = ({ kind }) => (kind === "writeThen" ? disk.opened : undefined);
    return disk;
  }

  /** Waits until storage does nothing of its own any more. Operations that the gate holds do not count. */
  async idle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      const before = this.operations.length;
      await new Promise<void>((resolve) => setImmediate(resolve));
      quiet = this.#inFlight === 0 && this.operations.length === before ? quiet + 1 : 0;
    }
  }

  /** What kill -9 does: operations under way end, no other one ever does. */
  async freeze(): Promise<void> {
    this.#frozen = true;
    await this.idle();
  }

  async open(path: string, mode: OpenMode): Promise<OpenFile> {
    return new WatchedFile(this, path, await this.pass("open", path, 0, () => this.#inner.open(path, mode)));
  }

  async createNew(path: string): Promise<OpenFile> {
    return new WatchedFile(this, path, await this.pass("createNew", path, 0, () => this.#inner.createNew(path)));
  }

  list(path: string): Promise<string[]> {
    return this.pass("list", path, 0, () => this.#inner.list(path));
  }

  async makeDirectory(path: string): Promise<void> {
    if (SHARD.test(path)) return;
    return this.pass("makeDirectory", path, 0, () => this.#inner.makeDirectory(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.pass("rename", from, 0, () => this.#inner.rename(from, to));
  }

  unlink(path: string): Promise<void> {
    return this.pass("unlink", path, 0, () => this.#inner.unlink(path));
  }

  removeTree(path: string): Promise<void> {
    return this.pass("removeTree", path, 0, () => this.#inner.removeTree(path));
  }

  syncDirectory(path: string): Promise<void> {
    return this.pass("syncDirectory", path, 0, () => this.#inner.syncDirectory(path));
  }

  linkTarget(path: string): Promise<string | null> {
    return this.pass("linkTarget", path, 0, () => this.#inner.linkTarget(path));
  }

  listen(path: string, accept: (connection: Socket) => void): Promise<Listener> {
    return this.pass("listen", path, 0, () => this.#inner.listen(path, accept));
  }

  reach(path: string): Promise<Reach> {
    return this.pass("reach", path, 0, () => this.#inner.reach(path));
  }

  /** Lets an operation through the gate, and counts it while it is under way. */
  async pass<T>(kind: Operation["kind"], path: string, bytes: number, run: () => Promise<T>): Promise<T> {
    if (this.#frozen) return never();
    const operation = { kind, path, bytes };
    this.operations.push(operation);
    const verdict = this.gate?.(operation);
    if (verdict instanceof Error) throw verdict;
    if (verdict !== undefined) await verdict;
    if (this.#frozen) return never();
    this.#inFlight += 1;
    try {
      return await run();
    } finally {
      this.#inFlight -= 1;
      if (this.#frozen) await never();
    }
  }
}

class WatchedFile implements OpenFile {
  readonly #files: WatchedFiles;
  readonly #path: string;
  readonly #inner: OpenFile;

  constructor(files: WatchedFiles, path: string, inner: OpenFile) {
    this.#files = files;
    this.#path = path;
    this.#inner = inner;
  }

  read(target: Buffer, offset: number, length: number, position: number): Promise<number> {
    return this.#files.pass("read", this.#path, length, () => this.#inner.read(target, offset, length, position));
  }

  write(bytes: Buffer, position: number): Promise<void> {
    return this.#files.pass("write", this.#path, bytes.length, () => this.#inner.write(bytes, position));
  }

  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void {
    this.#files
      .pass("writeThen", this.#path, bytes.length, () => this.#inner.write(bytes, position))
      .then(
        () => done(null),
        (error: Error) => done(error),
      );
  }

  sync(): Promise<void> {
    return this.#files.pass("sync", this.#path, 0, () => this.#inner.sync());
  }

  truncate(length: number): Promise<void> {
    return this.#files.pass("truncate", this.#path, length, () => this.#inner.truncate(length));
  }

  size(): Promise<number> {
    return this.#files.pass("size", this.#path, 0, () => this.#inner.size());
  }

  close(): Promise<void> {
    return this.#files.pass("close", this.#path, 0, () => this.#inner.close());
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** A point that operations wait at until a test opens it. */
export class Barrier {
  readonly opened: Promise<void>;
  open: () => void = () => {};

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}
