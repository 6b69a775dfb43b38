import assert from "node:assert/strict";
import { FileStorage } from "../../src/storage/file/file-storage.js";
import type { Files } from "../../src/storage/file/disk/files.js";
import type { StoredStream } from "../../src/storage/storage.js";
import { append, bytesOf, created, forked, keptLog, recordOf, remove } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";
import type { Random } from "../helpers/random.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";

/** Where the data directory is on the simulated disk. */
export const DIR = "/data";

/** What was acknowledged of one stream. */
export interface Truth {
  readonly id: string;
  /** All bytes from position 0 on, those of its source too. */
  bytes: Buffer;
  /** Where its appends end, those of its source up to its point too. */
  readonly ends: Set<number>;
  closed: boolean;
  /** Whether it was deleted and is only kept for its forks. */
  isKept: boolean;
}

/** The 256 directories of a new data directory: to look through them takes longer than all the rest of a small one. */
const SHARD = /^\/data\/streams\/[0-9a-f]{2}$/;

/** The disk for one process, with no more directories for streams than there are streams. */
export function mountSparsely(disk: SimulatedDisk): Files {
  const files = disk.mount();
  return new Proxy(files, {
    get(target, property: keyof Files) {
      const value = target[property];
      if (typeof value !== "function") return value;
      const call = value.bind(target) as (path: string) => Promise<void>; // the two that are meant here
      if (property === "makeDirectory") return (path: string) => (SHARD.test(path) ? Promise.resolve() : call(path));
      if (property === "syncDirectory") return (path: string) => (SHARD.test(path) && !disk.exists(path) ? Promise.resolve() : call(path));
      return call;
    },
  });
}

/**
 * An engine on the disk; sizes are small, so that segments roll, large payloads go past the journal, and indexes get files of their own.
 */
export function engineOn(disk: SimulatedDisk, journalBytes = 65_536): Promise<FileStorage> {
  const sizes = { segmentBytes: 2000, journalBytes, journalBypassBytes: 1500, tailCacheBytes: 64 * 1024, maxInlineIndexBytes: 8 };
  return FileStorage.open({
    dir: DIR,
    fsync: true,
    ...sizes,
    clock: new ManualClock(1_700_000_000_000),
    log: keptLog().log,
    files: mountSparsely(disk),
    onFault: assert.ifError,
  });
}

/** A directory that was served for a while, and all that was acknowledged. Every act is a batch, or more, of its own. */
export class DamagedWorld {
  readonly disk: SimulatedDisk;
  /** The streams that are there, by name. */
  readonly streams = new Map<string, Truth>();
  /** Streams that a fork was made of, by name, or that are forks: what happens to one may happen to the other. */
  readonly related = new Set<string>();
  readonly #random: Random;
  readonly #journalBytes: number;
  readonly #names: readonly string[];
  readonly #hasForks: boolean;
  #acts = 0;

  constructor(disk: SimulatedDisk, random: Random) {
    this.disk = disk;
    this.#random = random;
    this.#journalBytes = random.pick([4096, 16_384, 65_536]);
    this.#names = ["a", "b", "c/d", "Ä", "e", "f"].slice(0, random.integer(1, 6));
    this.#hasForks = random.chance(0.4);
  }

  /** Some lives of a server, with a clean end or a kill. */
  async live(): Promise<void> {
    const random = this.#random;
    for (let lives = random.integer(1, 3); lives > 0; lives -= 1) {
      const storage = await engineOn(this.disk, this.#journalBytes);
      for (
        let acts = random.weighted([
          [1, 0],
          [6, random.integer(1, 25)],
          [1, 60],
        ]);
        acts > 0;
        acts -= 1
      )
        await this.#act(storage);
      const isKilled = random.chance(lives === 1 ? 0.65 : 0.4);
      if (isKilled) this.disk.crash("kill");
      else await storage.close();
    }
    this.disk.crash("kill");
    this.disk.settle();
  }

  async #act(storage: FileStorage): Promise<void> {
    this.#acts += 1;
    const name = this.#random.pick(this.#names);
    const truth = this.streams.get(name);
    if (truth?.isKept === true) return;
    if (truth === undefined) return this.#create(storage, name);
    const stream = await storage.load(name);
    assert.ok(stream !== null, `${name} is there`);
    await this.#random.weighted<() => Promise<void>>([
      [12, () => this.#append(storage, stream, truth)],
      [1, async () => void storage.touch(stream, 1_700_000_000_000 + this.#acts)],
      [1, () => this.#close(storage, stream, truth)],
      [1, () => this.#remove(storage, stream, name, truth)],
      [2, () => this.#fork(storage, stream, name, truth)],
      [1, () => storage.persist(stream)],
    ])();
  }

  #payload(): Buffer {
    return bytesOf(
      this.#random.weighted([
        [6, 5],
        [3, this.#random.integer(1, 400)],
        [1, this.#random.integer(1500, 3000)],
      ]),
      this.#acts,
    );
  }

  async #create(storage: FileStorage, name: string): Promise<void> {
    const bytes = this.#random.chance(0.3) ? Buffer.alloc(0) : this.#payload();
    const stream = await created(storage, name, bytes);
    this.streams.set(name, { id: stream.id, bytes, ends: new Set([0, bytes.length]), closed: false, isKept: false });
  }

  async #append(storage: FileStorage, stream: StoredStream, truth: Truth): Promise<void> {
    if (truth.closed) return;
    const bytes = this.#payload();
    const producer = this.#random.chance(0.2) ? { id: "p", epoch: 1, seq: this.#acts } : null;
    assert.equal(await append(storage, stream, recordOf(bytes, { producer })), "durable");
    truth.bytes = Buffer.concat([truth.bytes, bytes]);
    truth.ends.add(truth.bytes.length);
  }

  async #close(storage: FileStorage, stream: StoredStream, truth: Truth): Promise<void> {
    if (truth.closed) return;
    assert.equal(await append(storage, stream, recordOf("", { closes: true })), "durable");
    truth.closed = true;
  }

  async #remove(storage: FileStorage, stream: StoredStream, name: string, truth: Truth): Promise<void> {
    if (stream.forkCount > 0) truth.isKept = true;
    else this.streams.delete(name);
    assert.equal(await remove(storage, stream), "durable");
  }

  async #fork(storage: FileStorage, source: StoredStream, name: string, { bytes, ends }: Truth): Promise<void> {
    const fork = `fork${this.#random.integer(1, 3)}`;
    if (!this.#hasForks || this.streams.has(fork)) return;
    const point = this.#random.integer(0, bytes.length);
    const own = this.#payload();
    const stream = await forked(storage, source, fork, point, own);
    const shared = [...ends].filter((end) => end < point);
    this.streams.set(fork, {
      id: stream.id,
      bytes: Buffer.concat([bytes.subarray(0, point), own]),
      ends: new Set([...shared, point, point + own.length]),
      closed: false,
      isKept: false,
    });
    this.related.add(fork).add(name);
  }
}
