import { DiskScheduler } from "./disk-scheduler.js";
import { Random } from "./random.js";
import { SystemError, type Call, type FaultCode } from "./simulated-call.js";
import { SimulatedFiles } from "./simulated-files.js";
import { DirectoryNode, FileNode, TreeChanges, type DiskNode, type EntryChange } from "./simulated-nodes.js";
import type { Files } from "../../src/storage/file/disk/files.js";

/** Which calls fail, by what they do and where. */
export type CallFilter = (call: string, path: string) => boolean;

/** Calls that are to fail: `times` of them, after `at` others. */
interface Fault {
  at: number;
  times: number;
  readonly code: FaultCode;
  readonly matches: CallFilter;
}

/** Calls that take some turns longer than others, before or after they take effect. */
export interface SlowCalls {
  readonly matches: CallFilter;
  readonly turns: number;
}

/** The call in whose middle the process ends: of those that match, the one after `left` others. */
interface CrashAmid {
  left: number;
  readonly kind: CrashKind;
  readonly matches: CallFilter;
  readonly onCrash: () => void;
}

/**
 * How a process ends without warning. `kill`: the system lives on, and what was written is there, synced or not.
 * `power`: of what was not synced anything may be there, in any order.
 */
export type CrashKind = "kill" | "power";

/**
 * A disk in memory, behind the interface of storage. Everything that it leaves open (order, delays, what a crash keeps)
 * its seed decides. `mount` gives the file system to one process; a crash ends it: its calls are never answered.
 */
export class SimulatedDisk {
  readonly scheduler: DiskScheduler;
  /** Calls that need room fail with ENOSPC. */
  isFull = false;
  /** Whether each write needs room, also where something is overwritten. */
  isCopyOnWrite = false;
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
  #fault: Fault | null = null;
  #crashAmid: CrashAmid | null = null;
  /** `null` while none takes longer than the others. */
  slow: SlowCalls | null = null;
  trace: ((line: string) => void) | null = null;
  /** Told of the path of each call that is made to fail. */
  onFault: ((path: string) => void) | null = null;

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

  /** Ends the process when the call after `calls` others, of those that match, has taken effect and is not answered. */
  crashAmid(calls: number, kind: CrashKind, matches: CallFilter, onCrash: () => void): void {
    this.#crashAmid = { left: calls, kind, matches, onCrash };
  }

  /** Ends the process now. */
  crash(kind: CrashKind): void {
    this.trace?.(`disk: crash (${kind})`);
    this.#crashAt = Infinity;
    this.#onCrash = null;
    this.#fault = null;
    this.#crashAmid = null;
    this.#mounted += 1;
    this.scheduler.clear();
    if (kind === "power") this.#losePower();
  }

  /** While no process runs, the system has written out all there was: it is permanent, synced or not. */
  settle(): void {
    this.#tree.settle();
    const visit = (directory: DirectoryNode): void => {
      for (const node of directory.entries.values()) {
        if (node.kind === "directory") visit(node);
        else node.settle();
      }
    };
    visit(this.#root);
  }

  /** Takes back `crashAfter` and faults to come. */
  calm(): void {
    this.#crashAt = Infinity;
    this.#onCrash = null;
    this.#fault = null;
    this.#crashAmid = null;
    this.slow = null;
    this.isFull = false;
  }

  /** Fails `times` calls with `code`, after `calls` others; only those that match count. */
  failAfter(calls: number, code: FaultCode, matches: CallFilter, times = 1): void {
    this.#fault = { at: calls, times, code, matches };
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
    const moreTurns = this.slow?.matches(call.name, call.path) === true ? this.slow.turns : 0;
    const isLateInEffect = moreTurns > 0 && this.#random.chance(0.5);
    this.#after(mount, isLateInEffect ? moreTurns : 0, () => {
      this.trace?.(`disk: ${call.name} ${call.path}`);
      const code = this.#faultFor(call);
      let answer: () => void;
      try {
        if (code !== null) {
          this.onFault?.(call.path);
          if (this.#random.chance(0.5)) call.partly?.();
          throw new SystemError(code, call.name, call.path);
        }
        const value = call.effect();
        if (this.#endsAmid(call)) return;
        answer = () => {
          call.finish?.();
          done(null, value);
        };
      } catch (error) {
        if (!(error instanceof SystemError)) throw error;
        this.trace?.(`disk: ${error.message}`);
        answer = () => done(error);
      }
      const isAnsweredLate = moreTurns > 0 && !isLateInEffect;
      if (call.finish === undefined && !isAnsweredLate && this.#random.chance(0.5)) answer();
      else this.#after(mount, isAnsweredLate ? moreTurns : 0, answer);
    });
  }

  /** What is written of `bytes` by a call that fails: a part of them, or all, where only the sync failed. */
  partOf(bytes: Buffer): Buffer {
    if (this.#random.chance(0.4)) return bytes;
    return bytes.subarray(0, this.#random.integer(0, bytes.length));
  }

  /** How many of `length` bytes one call reads or writes: now and then fewer, as the system may. */
  shortened(length: number): number {
    return length > 1 && this.#random.chance(0.03) ? this.#random.integer(1, length - 1) : length;
  }

  /** What the system tells of itself under /proc; `null` for any other path. */
  systemFile(path: string): Buffer | null {
    if (path === "/proc/sys/kernel/random/boot_id") return Buffer.from(`boot-${this.#boot}\n`);
    if (/^\/proc\/\d+\/stat$/.test(path)) return Buffer.from(`1 (node) ${"0 ".repeat(19)}${this.#mounted} 0\n`);
    return null;
  }

  /** The same of its symbolic links there. */
  systemLink(path: string): string | null {
    if (path === "/proc/self") return String(process.pid);
    return path === "/proc/self/ns/pid" ? "pid:[1]" : null;
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
    for (const name of namesOf(path)) {
      if (node?.kind === "file") throw new SystemError("ENOTDIR", "open", path);
      node = node?.entries.get(name);
    }
    return node;
  }

  /** Whether this is the call in whose middle the process ends, which it does. */
  #endsAmid({ name, path }: Call<unknown>): boolean {
    const amid = this.#crashAmid;
    if (amid === null || !amid.matches(name, path)) return false;
    amid.left -= 1;
    if (amid.left >= 0) return false;
    this.crash(amid.kind);
    amid.onCrash();
    return true;
  }

  #after(mount: number, moreTurns: number, task: () => void): void {
    this.scheduler.add(() => {
      if (!this.isMounted(mount)) return;
      this.#events += 1;
      if (this.#events >= this.#crashAt) {
        const onCrash = this.#onCrash;
        this.crash(this.#crashKind);
        onCrash?.();
      } else task();
    }, moreTurns);
  }

  #faultFor(call: Call<unknown>): FaultCode | null {
    const fault = this.#fault;
    if (fault !== null && fault.matches(call.name, call.path)) {
      fault.at -= 1;
      if (fault.at < 0) {
        fault.times -= 1;
        if (fault.times === 0) this.#fault = null;
        return fault.code;
      }
    }
    const needsRoom = (): boolean => call.needsRoom?.() === true || (this.isCopyOnWrite && /^(log-|replacement-)?write$/.test(call.name));
    return this.isFull && needsRoom() ? "ENOSPC" : null;
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

const splitPaths = new Map<string, readonly string[]>();
const MAX_SPLIT_PATHS = 5000;

/** The names in a path; paths come again and again. */
function namesOf(path: string): readonly string[] {
  const known = splitPaths.get(path);
  if (known !== undefined) return known;
  const names = path.split("/").filter((name) => name !== "");
  if (splitPaths.size >= MAX_SPLIT_PATHS) splitPaths.clear();
  splitPaths.set(path, names);
  return names;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
