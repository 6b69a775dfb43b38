import type { Random } from "./random.js";

/** The unit that a disk writes whole. */
const SECTOR_BYTES = 512;

interface Version<T> {
  readonly stamp: number;
  readonly value: T;
}

/**
 * A file of the simulated disk. `data` is what reads see. For each sector with unsynced writes the versions it went
 * through are kept, the durable one first: a crash leaves any one of them, each sector on its own.
 */
export class FileNode {
  readonly kind = "file";
  size = 0;
  /** Of a socket, the mount of the process that listens on it. */
  listener: number | null = null;
  #data = Buffer.alloc(SECTOR_BYTES);
  readonly #sectors = new Map<number, Version<Buffer>[]>();
  /** By sector, the newest version that a failed sync left behind. */
  readonly #forgotten = new Map<number, number>();
  #sizes: Version<number>[] = [{ stamp: 0, value: 0 }];

  /** The content that reads see. */
  get content(): Buffer {
    return this.#data.subarray(0, this.size);
  }

  read(target: Buffer, offset: number, length: number, position: number): number {
    return position >= this.size ? 0 : this.#data.copy(target, offset, position, Math.min(this.size, position + length));
  }

  write(bytes: Buffer, position: number, stamp: number): void {
    if (bytes.length === 0) return;
    const end = position + bytes.length;
    this.#reserve(end);
    this.#change(position, end, stamp, () => bytes.copy(this.#data, position));
    if (end > this.size) this.#resize(end, stamp);
  }

  truncate(length: number, stamp: number): void {
    this.#reserve(length);
    if (length < this.size) this.#change(length, this.size, stamp, () => this.#data.fill(0, length, this.size));
    this.#resize(length, stamp);
  }

  /** What was written at `stamp` or before is permanent. */
  sync(stamp: number): void {
    for (const [sector, versions] of this.#sectors) this.#settleSector(sector, versions, stamp);
    this.#sizes = since(this.#sizes, stamp);
  }

  /** The same for the bytes `from..to` alone, and the length. */
  syncRange(from: number, to: number, stamp: number): void {
    for (let sector = Math.floor(from / SECTOR_BYTES); sector * SECTOR_BYTES < to; sector += 1) {
      const versions = this.#sectors.get(sector);
      if (versions !== undefined) this.#settleSector(sector, versions, stamp);
    }
    this.#sizes = since(this.#sizes, stamp);
  }

  /**
   * A sync fails. The system takes what it did not get to the disk for written: reads see it, and no later sync brings
   * it there, unless it is written again.
   */
  failSync(stamp: number): void {
    for (const sector of this.#sectors.keys()) this.#forgotten.set(sector, stamp);
  }

  /** All that reads see is permanent. */
  settle(): void {
    this.#sectors.clear();
    this.#forgotten.clear();
    this.#sizes = [{ stamp: 0, value: this.size }];
  }

  /** The power goes: of what is not permanent anything may stay. */
  crash(random: Random): void {
    const fate = random.pick(["lost", "kept", "mixed", "mixed"] as const);
    const choose = <T>(versions: readonly Version<T>[], fallback: T): T => {
      if (fate === "mixed") return random.pick(versions).value;
      return (fate === "lost" ? versions[0] : versions.at(-1))?.value ?? fallback;
    };
    for (const [sector, versions] of this.#sectors) choose(versions, Buffer.alloc(0)).copy(this.#data, sector * SECTOR_BYTES);
    let size = choose(this.#sizes, this.size);
    const lowest = Math.min(...this.#sizes.map(({ value }) => value));
    // A long write may have got to any of its sectors.
    if (fate === "mixed" && random.chance(0.3))
      size = Math.min(size, Math.ceil((lowest + random.next() * (size - lowest)) / SECTOR_BYTES) * SECTOR_BYTES);
    this.size = size;
    this.#data.fill(0, size);
    this.settle();
  }

  /** Turns one bit around, whatever a crash may leave of its sector. */
  flipBit(bit: number): void {
    const at = Math.floor(bit / 8);
    const flip = (bytes: Buffer, index: number): void => void bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << (bit % 8)), index);
    flip(this.#data, at);
    for (const { value } of this.#sectors.get(Math.floor(at / SECTOR_BYTES)) ?? []) flip(value, at % SECTOR_BYTES);
  }

  #settleSector(sector: number, versions: readonly Version<Buffer>[], stamp: number): void {
    const rest = since(versions, stamp);
    if ((rest[0]?.stamp ?? 0) <= (this.#forgotten.get(sector) ?? -1)) return;
    if (rest.length <= 1) this.#sectors.delete(sector);
    else this.#sectors.set(sector, rest);
  }

  #change(from: number, to: number, stamp: number, change: () => void): void {
    const first = Math.floor(from / SECTOR_BYTES);
    const last = Math.floor((to - 1) / SECTOR_BYTES);
    for (let sector = first; sector <= last; sector += 1) {
      if (!this.#sectors.has(sector)) this.#sectors.set(sector, [{ stamp: 0, value: this.#copyOf(sector) }]);
    }
    change();
    for (let sector = first; sector <= last; sector += 1) this.#sectors.get(sector)?.push({ stamp, value: this.#copyOf(sector) });
  }

  #copyOf(sector: number): Buffer {
    return Buffer.from(this.#data.subarray(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES));
  }

  #resize(size: number, stamp: number): void {
    this.size = size;
    this.#sizes.push({ stamp, value: size });
  }

  #reserve(length: number): void {
    if (length <= this.#data.length) return;
    const grown = Buffer.alloc(Math.ceil(Math.max(length, this.#data.length * 2) / SECTOR_BYTES) * SECTOR_BYTES);
    this.#data.copy(grown);
    this.#data = grown;
  }
}

/** The newest version at `stamp` or before, and all after it. */
function since<T>(versions: readonly Version<T>[], stamp: number): Version<T>[] {
  let durable = 0;
  versions.forEach((version, index) => {
    if (version.stamp <= stamp) durable = index;
  });
  return versions.slice(durable);
}

/** A directory of the simulated disk: what reads see, and what is permanent. */
export class DirectoryNode {
  readonly kind = "directory";
  readonly entries = new Map<string, DiskNode>();
  readonly durable = new Map<string, DiskNode>();
}

/** What a name can stand for. */
export type DiskNode = FileNode | DirectoryNode;

/** One entry that a change of the tree sets, or takes away. */
export interface EntryChange {
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly node: DiskNode | null;
}

interface TreeChange {
  readonly stamp: number;
  readonly changes: readonly EntryChange[];
}

/** Unsynced changes of the tree beyond this are made permanent, oldest first, as any system does in time. */
const MAX_UNSYNCED_CHANGES = 400;

/**
 * The changes of all directories that are not permanent. Each happens as a whole or not at all, whatever came of the
 * others, but for those before it that concern the same name.
 */
export class TreeChanges {
  #unsynced: TreeChange[] = [];

  apply(stamp: number, changes: readonly EntryChange[]): void {
    for (const { directory, name, node } of changes) set(directory.entries, name, node);
    this.#unsynced.push({ stamp, changes });
    const oldest = this.#unsynced.length > MAX_UNSYNCED_CHANGES ? this.#unsynced.shift() : undefined;
    if (oldest !== undefined) commit(oldest);
  }

  /** Makes the changes of `directory` permanent that were made at `stamp` or before. */
  sync(directory: DirectoryNode, stamp: number): void {
    const isOfDirectory = (change: TreeChange): boolean =>
      change.stamp <= stamp && change.changes.some((entry) => entry.directory === directory);
    const chosen = new Set<TreeChange>();
    // From the newest to the oldest: a change takes those with it that it builds on.
    for (let index = this.#unsynced.length - 1; index >= 0; index -= 1) {
      const change = this.#unsynced[index];
      if (change === undefined) continue;
      if (isOfDirectory(change) || [...chosen].some((later) => concernSame(later, change))) chosen.add(change);
    }
    this.#unsynced = this.#unsynced.filter((change) => {
      if (chosen.has(change)) commit(change);
      return !chosen.has(change);
    });
  }

  /** Makes all changes permanent. */
  settle(): void {
    for (const change of this.#unsynced) commit(change);
    this.#unsynced = [];
  }

  /** The power goes: each change is there or not. */
  crash(random: Random): void {
    const lost: TreeChange[] = [];
    const keep = random.pick([0, 0.5, 0.9, 1]);
    for (const change of this.#unsynced) {
      if (random.chance(keep) && !lost.some((earlier) => concernSame(earlier, change))) commit(change);
      else lost.push(change);
    }
    this.#unsynced = [];
  }
}

function concernSame(left: TreeChange, right: TreeChange): boolean {
  return left.changes.some((one) => right.changes.some((other) => one.directory === other.directory && one.name === other.name));
}

function commit({ changes }: TreeChange): void {
  for (const { directory, name, node } of changes) set(directory.durable, name, node);
}

function set(entries: Map<string, DiskNode>, name: string, node: DiskNode | null): void {
  if (node === null) entries.delete(name);
  else entries.set(name, node);
}
