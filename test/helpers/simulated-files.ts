import { SystemError, type Call } from "./simulated-call.js";
import type { SimulatedDisk } from "./simulated-disk.js";
import { FileNode, type DirectoryNode } from "./simulated-nodes.js";
import { mustExist, syncsWrites, type Files, type OpenFile, type OpenMode } from "../../src/storage/file/disk/files.js";
import type { Listener, Reach } from "../../src/storage/file/disk/sockets.js";

/** The file system as one process has it. */
export class SimulatedFiles implements Files {
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
      return new SimulatedFile(disk, this.#mount, path, file, "system");
    }
    const effect = (): FileNode => {
      const file = !mustExist(mode) && !disk.exists(path) ? disk.createFile(path) : disk.fileAt(path);
      if (mode === "replacement") file.truncate(0, disk.nextStamp());
      return file;
    };
    const file = await this.#call({ name: `open-${mode}`, path, needsRoom: () => !mustExist(mode) && !disk.exists(path), effect });
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
    return this.#call({
      name: "list",
      path: directory,
      effect: () => (disk.exists(directory) ? [...disk.directoryAt(directory).entries.keys()] : []),
    });
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

  async linkTarget(path: string): Promise<string | null> {
    return this.#disk.systemLink(path);
  }

  /** A socket is a file that says which process listens on it. */
  async listen(path: string): Promise<Listener> {
    const disk = this.#disk;
    const effect = (): FileNode => {
      if (disk.exists(path)) throw new SystemError("EADDRINUSE", "bind", path);
      const socket = disk.createFile(path);
      socket.listener = this.#mount;
      return socket;
    };
    const socket = await this.#call({ name: "listen", path, needsRoom: () => true, effect });
    return { close: async () => void (socket.listener = null) };
  }

  reach(path: string): Promise<Reach> {
    const disk = this.#disk;
    const effect = (): Reach => {
      if (!disk.exists(path)) return "missing";
      const { listener } = disk.fileAt(path);
      return listener !== null && disk.isMounted(listener) ? "answers" : "refuses";
    };
    return this.#call({ name: "connect", path, effect });
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
  readonly #mode: OpenMode | "system";
  #isClosed = false;

  constructor(disk: SimulatedDisk, mount: number, path: string, file: FileNode, mode: OpenMode | "system") {
    this.#disk = disk;
    this.#mount = mount;
    this.#path = path;
    this.#file = file;
    this.#mode = mode;
  }

  read(target: Buffer, offset: number, length: number, position: number): Promise<number> {
    // What the system tells of itself comes whole.
    const count = this.#mode === "system" ? length : this.#disk.shortened(length);
    return this.#call({ name: "read", effect: () => this.#file.read(target, offset, count, position) });
  }

  write(bytes: Buffer, position: number): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(bytes, position, (error) => (error === null ? resolve() : reject(error))));
  }

  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void {
    const count = this.#disk.shortened(bytes.length);
    this.#writeOnce(bytes.subarray(0, count), position, (error) => {
      if (error !== null || count === bytes.length) done(error);
      else this.writeThen(bytes.subarray(count), position + count, done);
    });
  }

  /** One call to the system, which may take only a part of what it is given. */
  #writeOnce(bytes: Buffer, position: number, done: (error: Error | null) => void): void {
    const disk = this.#disk;
    const file = this.#file;
    const isSyncing = this.#mode !== "system" && syncsWrites(this.#mode);
    let stamp = 0;
    const write = (part: Buffer): void => {
      stamp = disk.nextStamp();
      file.write(part, position, stamp);
    };
    const call: Call<void> = {
      name: isSyncing ? `${this.#mode}-write` : "write",
      path: `${this.#path} ${position}+${bytes.length}`,
      needsRoom: () => position + bytes.length > file.size,
      effect: () => {
        this.#assertOpen();
        if (this.#mode !== "system" && mustExist(this.#mode)) throw new SystemError("EBADF", "write", this.#path);
        write(bytes);
      },
      partly: () => {
        write(disk.partOf(bytes));
        if (isSyncing) file.failSync(stamp);
      },
    };
    const finish = (): void => file.syncRange(position, position + bytes.length, stamp);
    disk.call(this.#mount, isSyncing ? { ...call, finish } : call, (error) => done(error));
  }

  sync(): Promise<void> {
    const { stamp } = this.#disk;
    const file = this.#file;
    return this.#call({ name: "sync", effect: () => undefined, finish: () => file.sync(stamp), partly: () => file.failSync(stamp) });
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
