import { mkdirSync, writeFileSync } from "node:fs";
import { join, normalize } from "node:path";
import {
  systemFiles,
  type Files,
  type FileStatus,
  type OpenFile,
  type OpenMode,
  type SystemFiles,
} from "../../src/storage/file/disk/files.js";
import type { SimulatedDisk } from "./simulated-disk.js";
import { diskError } from "./watched-files.js";

/** What is below it is on the simulated disk. */
export const SIMULATED = "/simulated";

/**
 * The real file system, with a simulated disk at {@link SIMULATED}: what goes from one to the other is copied, as between
 * any two disks. When the power of that disk goes, all calls to it reject, and what it has lost is lost.
 */
export class TwoDisks implements SystemFiles {
  readonly #disk: SimulatedDisk;
  readonly #simulated: Files;
  readonly #real = systemFiles(false);
  readonly #inodes = new WeakMap<object, number>();
  readonly #cut: Promise<never>;
  #reject: (error: Error) => void = () => undefined;
  #count = 0;

  constructor(disk: SimulatedDisk) {
    this.#disk = disk;
    this.#simulated = disk.mount();
    this.#cut = new Promise((_, reject) => (this.#reject = reject));
    this.#cut.catch(() => undefined);
  }

  /** Cuts the power after so many more of its events. */
  cutAfter(events: number): void {
    this.#disk.crashAfter(events, "power", () => this.#reject(new Error("the power went")));
  }

  async open(path: string, mode: OpenMode): Promise<OpenFile> {
    return this.#isReal(path) ? this.#real.open(path, mode) : this.#guarded(await this.#on(path, (files, at) => files.open(at, mode)));
  }

  async createNew(path: string): Promise<OpenFile> {
    return this.#isReal(path) ? this.#real.createNew(path) : this.#guarded(await this.#on(path, (files, at) => files.createNew(at)));
  }

  list(path: string): Promise<string[]> {
    return this.#on(path, (files, at) => files.list(at));
  }

  makeDirectory(path: string): Promise<void> {
    return this.#on(path, (files, at) => files.makeDirectory(at));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#on(from, (files, at) => files.rename(at, to));
  }

  unlink(path: string): Promise<void> {
    return this.#on(path, (files, at) => files.unlink(at));
  }

  removeTree(path: string): Promise<void> {
    return this.#on(path, (files, at) => files.removeTree(at));
  }

  syncDirectory(path: string): Promise<void> {
    return this.#on(path, (files, at) => files.syncDirectory(at));
  }

  linkTarget(path: string): Promise<string | null> {
    return this.#on(path, (files, at) => files.linkTarget(at));
  }

  listen(path: string, accept: Parameters<Files["listen"]>[1]): ReturnType<Files["listen"]> {
    return this.#on(path, (files, at) => files.listen(at, accept));
  }

  reach(path: string): ReturnType<Files["reach"]> {
    return this.#on(path, (files, at) => files.reach(at));
  }

  status(path: string): Promise<FileStatus | null> {
    return this.#isReal(path) ? this.#real.status(path) : this.linkStatus(path);
  }

  async linkStatus(path: string): Promise<FileStatus | null> {
    if (this.#isReal(path)) return this.#real.linkStatus(path);
    const at = normalize(path);
    if (!this.#disk.exists(at)) return null;
    const content = this.#disk.contentOf(at);
    const node = content === null ? this.#disk.directoryAt(at) : this.#disk.fileAt(at);
    let inode = this.#inodes.get(node);
    if (inode === undefined) this.#inodes.set(node, (inode = this.#count += 1));
    return { size: content?.length ?? 0, kind: content === null ? "directory" : "file", owner: 0, device: -1, inode, links: 1 };
  }

  link(): Promise<void> {
    return Promise.reject(diskError("EXDEV"));
  }

  connect(path: string): ReturnType<SystemFiles["connect"]> {
    return this.#real.connect(path);
  }

  #isReal(path: string): boolean {
    const at = `${normalize(path)}/`;
    return !at.startsWith(`${SIMULATED}/`) && !at.startsWith("/proc/");
  }

  #on<T>(path: string, call: (files: Files, path: string) => Promise<T>): Promise<T> {
    return this.#isReal(path) ? call(this.#real, path) : Promise.race([call(this.#simulated, normalize(path)), this.#cut]);
  }

  #guarded(file: OpenFile): OpenFile {
    const cut = this.#cut;
    return {
      read: (...args) => Promise.race([file.read(...args), cut]),
      write: (...args) => Promise.race([file.write(...args), cut]),
      writeThen: (...args) => file.writeThen(...args),
      sync: () => Promise.race([file.sync(), cut]),
      truncate: (length) => Promise.race([file.truncate(length), cut]),
      size: () => Promise.race([file.size(), cut]),
      close: () => Promise.race([file.close(), cut]),
    };
  }
}

/** Writes what a simulated disk has at `from` to the real one. */
export function copyOut(disk: SimulatedDisk, from: string, to: string): void {
  const content = disk.contentOf(from);
  if (content !== null) return writeFileSync(to, content);
  mkdirSync(to);
  for (const name of disk.namesIn(from)) copyOut(disk, join(from, name), join(to, name));
}
