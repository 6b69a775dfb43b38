import { DiskScheduler } from "./disk-scheduler.js";
import { Random } from "./random.js";
import { DirectoryNode, FileNode, TreeChanges, type DiskNode, type EntryChange } from "./simulated-nodes.js";
import type { Files, OpenFile, OpenMode } from "../../src/storage/file/files.js";

/**
 * How a process ends without warning. `kill`: the system lives on, and what was written is there, synced or not.
 * `power`: of what was not synced anything may be there, in any order.
 */
export type CrashKind = "kill" | "power";

/** The system errors that a call can be made to fail with. */
export type FaultCode = "EIO" | "ENOSPC" | "EMFILE";

/** An error as node:fs makes it. */
export class SystemError extends Error {
  readonly code: string;

  constructor(code: string, call: string, path: string) {
    super(`${code}: ${call} '${path}'`);
    this.code = code;
  }
}

/** One call on its way: it takes effect some time after it was made, and is answered some time after that. */
interface Call<T> {
  readonly name: string;
  readonly path: string;
  /** Whether it needs room on the disk, which it can fail for. */
  readonly needsRoom?: () => boolean;
  readonly effect: () => T;
  /** What it does before it fails in the middle. */
  readonly partly?: () => void;
  /** What is true by the time it is answered. */
  readonly finish?: () => void;
}

/**
 * A disk in memory, behind the interface of storage. Everything that it leaves open (order, delays, what a crash keeps)
 * its seed decides. `mount` gives the file system to one process; a crash ends it: its calls are never answered.
 */
export class SimulatedDisk {
  readonly scheduler: DiskScheduler;
  /** Calls that need room fail with ENOSPC. */
  isFull = false;
  readonly #random: Random;
  #root = new DirectoryNode();
  readonly #tree = new TreeChanges();
  #stamp = 0;
  #boot = 1;
  #mounted = 0;
  #events = 0;
  #crashAt = Infinity;
  #crashKind: CrashKind = "power";
  #onCrash: (() => void) | null = null;
  #fault: { readonly at: number; readonly code: FaultCode; readonly matches: (call: string, path: string) => boolean } | null = null;
  #calls = 0;
  trace: ((line: string) => void) | null = null;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.scheduler = new DiskScheduler(this.#random);
  }

  /** How many calls took effect or were answered. */
  get events(): number {
    return this.#events;
  }

  /** The file system for a new process. */
  mount(): Files {
    this.#mounted += 1;
    return new SimulatedFiles(this, this.#mounted);
  }

  isMounted(mount: number): boolean {
    return mount === this.#mounted;
  }

  /** Ends the process after `events` more events; `onCrash` is told. */
  crashAfter(events: number, kind: CrashKind, onCrash: () => void): void {
    this.#crashAt = this.#events + events;
    this.#crashKind = kind;
    this.#onCrash = onCrash;
  }

  /** Ends the process now. */
  crash(kind: CrashKind): void {
    this.trace?.(`disk: crash (${kind})`);
    this.#crashAt = Infinity;
    this.#onCrash = null;
    this.#fault = null;
    this.#mounted += 1;
    this.scheduler.clear();
    if (kind === "power") this.#losePower();
  }

  /** Takes back `crashAfter` and faults to come. */
  calm(): void {
    this.#crashAt = Infinity;
    this.#onCrash = null;
    this.#fault = null;
    this.isFull = false;
  }

  /** Fails the call that comes `calls` after this with `code`; only those that match count. */
  failAfter(calls: number, code: FaultCode, matches: (call: string, path: string) => boolean = () => true): void {
    this.#calls = 0;
    this.#fault = { at: calls, code, matches };
  }

  /** Turns one bit of a file around, `bit` counted from its start. */
  flipBit(path: string, bit: number): void {
    this.fileAt(path).flipBit(bit);
  }

  /** What a file holds as reads see it; `null` when it is not there. */
  contentOf(path: string): Buffer | null {
    const node = this.#find(path);
    return node?.kind === "file" ? Buffer.from(node.content) : null;
  }

  /** Names in a directory, sorted; empty when there is none. */
  namesIn(path: string): string[] {
    const node = this.#find(path);
    return node?.kind === "directory" ? [...node.entries.keys()].sort() : [];
  }

  nextStamp(): number {
    this.#stamp += 1;
    return this.#stamp;
  }

  get stamp(): number {
    return this.#stamp;
  }

  /** Sends a call on its way. */
  call<T>(mount: number, call: Call<T>, done: (error: Error | null, value?: T) => void): void {
    this.#after(mount, () => {
      this.trace?.(`disk: ${call.name} ${call.path}`);
      const code = this.#faultFor(call);
      let answer: () => void;
      try {
        if (code !== null) {
          if (this.#random.chance(0.5)) call.partly?.();
          throw new SystemError(code, call.name, call.path);
        }
        const value = call.effect();
        answer = () => {
          call.finish?.();
          done(null, value);
        };
      } catch (error) {
        if (!(error instanceof SystemError)) throw error;
        this.trace?.(`disk: ${error.message}`);
        answer = () => done(error);
      }
      if (call.finish === undefined && this.#random.chance(0.5)) answer();
      else this.#after(mount, answer);
    });
  }

  /** A strict part of a write that fails. */
  partOf(bytes: Buffer): Buffer {
    return bytes.subarray(0, this.#random.integer(0, Math.max(0, bytes.length - 1)));
  }

  /** What the system tells of itself under /proc; `null` for any other path. */
  systemFile(path: string): Buffer | null {
    if (path === "/proc/sys/kernel/random/boot_id") return Buffer.from(`boot-${this.#boot}\n`);
    if (/^\/proc\/\d+\/stat$/.test(path)) return Buffer.from(`1 (node) ${"0 ".repeat(19)}${this.#mounted} 0\n`);
    return null;
  }

  fileAt(path: string): FileNode {
    const node = this.#find(path);
    if (node === undefined) throw new SystemError("ENOENT", "open", path);
    if (node.kind === "directory") throw new SystemError("EISDIR", "open", path);
    return node;
  }

  directoryAt(path: string): DirectoryNode {
    const node = this.#find(path);
    if (node === undefined) throw new SystemError("ENOENT", "open", path);
    if (node.kind === "file") throw new SystemError("ENOTDIR", "open", path);
    return node;
  }

  /** Makes an empty file where there is none. */
  createFile(path: string): FileNode {
    const file = new FileNode();
    this.change([this.entryOf(path, file)]);
    return file;
  }

  makeDirectory(path: string): void {
    const missing: string[] = [];
    for (let at = path; at !== "/" && this.#find(at) === undefined; at = parentOf(at)) missing.unshift(at);
    for (const level of missing) this.change([this.entryOf(level, new DirectoryNode())]);
    this.directoryAt(path);
  }

  rename(from: string, to: string): void {
    const node = this.#find(from);
    if (node === undefined) throw new SystemError("ENOENT", "rename", from);
    const target = this.#find(to);
    if (target?.kind === "directory" && target.entries.size > 0) throw new SystemError("ENOTEMPTY", "rename", to);
    this.change([this.entryOf(from, null), this.entryOf(to, node)]);
  }

  removeTree(path: string): void {
    const node = this.#find(path);
    if (node === undefined) return;
    if (node.kind === "directory") for (const name of [...node.entries.keys()]) this.removeTree(`${path}/${name}`);
    this.change([this.entryOf(path, null)]);
  }

  syncDirectory(directory: DirectoryNode, stamp: number): void {
    this.#tree.sync(directory, stamp);
  }

  change(changes: readonly EntryChange[]): void {
    this.#tree.apply(this.nextStamp(), changes);
  }

  entryOf(path: string, node: DiskNode | null): EntryChange {
    return { directory: this.directoryAt(parentOf(path)), name: nameOf(path), node };
  }

  /** Whether there is something at `path`. */
  exists(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  #find(path: string): DiskNode | undefined {
    let node: DiskNode | undefined = this.#root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      if (node?.kind === "file") throw new SystemError("ENOTDIR", "open", path);
      node = node?.entries.get(name);
    }
    return node;
  }

  #after(mount: number, task: () => void): void {
    this.scheduler.add(() => {
      if (!this.isMounted(mount)) return;
      this.#events += 1;
      if (this.#events >= this.#crashAt) {
        const onCrash = this.#onCrash;
        this.crash(this.#crashKind);
        onCrash?.();
      } else task();
    });
  }

  #faultFor(call: Call<unknown>): FaultCode | null {
    const fault = this.#fault;
    if (fault !== null && fault.matches(call.name, call.path)) {
      this.#calls += 1;
      if (this.#calls > fault.at) {
        this.#fault = null;
        return fault.code;
      }
    }
    return this.isFull && call.needsRoom?.() === true ? "ENOSPC" : null;
  }

  #losePower(): void {
    this.#boot += 1;
    this.#tree.crash(this.#random);
    // Files that no durable directory holds any more are gone with their handles.
    const visit = (directory: DirectoryNode): void => {
      directory.entries.clear();
      for (const [name, node] of directory.durable) {
        directory.entries.set(name, node);
        if (node.kind === "directory") visit(node);
        else node.crash(this.#random);
      }
    };
    visit(this.#root);
  }
}

/** The file system as one process has it. */
class SimulatedFiles implements Files {
  readonly #disk: SimulatedDisk;
  readonly #mount: number;

  constructor(disk: SimulatedDisk, mount: number) {
    this.#disk = disk;
    this.#mount = mount;
  }

  async open(path: string, mode: OpenMode): Promise<OpenFile> {
    const disk = this.#disk;
    const system = disk.systemFile(path);
    if (system !== null) {
      const file = new FileNode();
      file.write(system, 0, 0);
      return new SimulatedFile(disk, this.#mount, path, file, "read");
    }
    const effect = (): FileNode => (mode !== "read" && !disk.exists(path) ? disk.createFile(path) : disk.fileAt(path));
    const file = await this.#call({ name: `open-${mode}`, path, needsRoom: () => mode !== "read" && !disk.exists(path), effect });
    return new SimulatedFile(disk, this.#mount, path, file, mode);
  }

  async createNew(path: string): Promise<OpenFile> {
    const disk = this.#disk;
    const effect = (): FileNode => {
      if (disk.exists(path)) throw new SystemError("EEXIST", "open", path);
      return disk.createFile(path);
    };
    const file = await this.#call({ name: "create", path, needsRoom: () => true, effect });
    return new SimulatedFile(disk, this.#mount, path, file, "write");
  }

  list(directory: string): Promise<string[]> {
    const disk = this.#disk;
    return this.#call({ name: "list", path: directory, effect: () => (disk.exists(directory) ? [...disk.directoryAt(directory).entries.keys()] : []) });
  }

  makeDirectory(path: string): Promise<void> {
    const disk = this.#disk;
    return this.#call({ name: "mkdir", path, needsRoom: () => !disk.exists(path), effect: () => disk.makeDirectory(path) });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call({ name: "rename", path: `${from} -> ${to}`, effect: () => this.#disk.rename(from, to) });
  }

  unlink(path: string): Promise<void> {
    const disk = this.#disk;
    const effect = (): void => {
      disk.fileAt(path);
      disk.change([disk.entryOf(path, null)]);
    };
    return this.#call({ name: "unlink", path, effect });
  }

  removeTree(path: string): Promise<void> {
    return this.#call({ name: "remove-tree", path, effect: () => this.#disk.removeTree(path) });
  }

  syncDirectory(path: string): Promise<void> {
    const disk = this.#disk;
    const { stamp } = disk;
    let directory: DirectoryNode | null = null;
    const finish = (): void => {
      if (directory !== null) disk.syncDirectory(directory, stamp);
    };
    return this.#call({ name: "sync-directory", path, effect: () => void (directory = disk.directoryAt(path)), finish });
  }

  #call<T>(call: Call<T>): Promise<T> {
    return promised(this.#disk, this.#mount, call);
  }
}

class SimulatedFile implements OpenFile {
  readonly #disk: SimulatedDisk;
  readonly #mount: number;
  readonly #path: string;
  readonly #file: FileNode;
  readonly #mode: OpenMode;
  #isClosed = false;

  constructor(disk: SimulatedDisk, mount: number, path: string, file: FileNode, mode: OpenMode) {
    this.#disk = disk;
    this.#mount = mount;
    this.#path = path;
    this.#file = file;
    this.#mode = mode;
  }

  read(target: Buffer, offset: number, length: number, position: number): Promise<number> {
    return this.#call({ name: "read", effect: () => this.#file.read(target, offset, length, position) });
  }

  write(bytes: Buffer, position: number): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(bytes, position, (error) => (error === null ? resolve() : reject(error))));
  }

  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void {
    const disk = this.#disk;
    const file = this.#file;
    let stamp = 0;
    const write = (part: Buffer): void => {
      stamp = disk.nextStamp();
      file.write(part, position, stamp);
    };
    const call: Call<void> = {
      name: this.#mode === "log" ? "log-write" : "write",
      path: `${this.#path} ${position}+${bytes.length}`,
      needsRoom: () => position + bytes.length > file.size,
      effect: () => {
        this.#assertOpen();
        if (this.#mode === "read") throw new SystemError("EBADF", "write", this.#path);
        write(bytes);
      },
      partly: () => write(disk.partOf(bytes)),
    };
    const finish = (): void => file.syncRange(position, position + bytes.length, stamp);
    disk.call(this.#mount, this.#mode === "log" ? { ...call, finish } : call, (error) => done(error));
  }

  sync(): Promise<void> {
    const { stamp } = this.#disk;
    return this.#call({ name: "sync", effect: () => undefined, finish: () => this.#file.sync(stamp) });
  }

  truncate(length: number): Promise<void> {
    return this.#call({ name: "truncate", effect: () => this.#file.truncate(length, this.#disk.nextStamp()) });
  }

  size(): Promise<number> {
    return this.#call({ name: "size", effect: () => this.#file.size });
  }

  close(): Promise<void> {
    return this.#call({ name: "close", effect: () => void (this.#isClosed = true) });
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new SystemError("EBADF", "a call on the closed", this.#path);
  }

  #call<T>({ name, effect, ...more }: Omit<Call<T>, "path">): Promise<T> {
    const checked = (): T => {
      this.#assertOpen();
      return effect();
    };
    return promised(this.#disk, this.#mount, { name, path: this.#path, effect: checked, ...more });
  }
}

function promised<T>(disk: SimulatedDisk, mount: number, call: Call<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    disk.call(mount, call, (error, value) => {
      if (error !== null) reject(error);
      // A call without an error has its value, of the type that it was made with.
      else resolve(value as T);
    });
  });
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
