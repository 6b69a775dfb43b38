import assert from "node:assert/strict";
import { test } from "node:test";
import { isPassing, type Files } from "../../src/storage/file/disk/files.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../src/storage/file/directory/lock.js";
import { DamagedStreamError, type StoredStream } from "../../src/storage/storage.js";
import { append, makeEngine, readAll, remove, startCreate, type Engine, type Outcome } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import { diskError, SEGMENT, WatchedFiles, type Operation } from "../helpers/watched-files.js";
import { findingsOf, listed } from "./disk-check.js";

/** The same histories in each run. */
const FIRST_SEED = 1;
const SEEDS = 60;
const DIR = "/data";
const NAMES = ["a", "b", "c", "d"];
/** Enough appends to fill a journal file, and a little more. */
const FILLING = 25;

/** What asks for a file by its path: one that is open stays so. */
const BY_PATH: ReadonlySet<Operation["kind"]> = new Set([
  "open",
  "createNew",
  "list",
  "makeDirectory",
  "rename",
  "unlink",
  "removeTree",
  "syncDirectory",
]);

/** What a stream may hold, `null` where it may not be there: one possibility, until a crash leaves the last change open. */
type Possible = Set<string | null>;

/** Makes every directory: what a power cut takes of the tree is part of this. */
class WholeFiles extends WatchedFiles {
  readonly #disk: Files;

  constructor(disk: Files) {
    super(disk);
    this.#disk = disk;
  }

  override makeDirectory(path: string): Promise<void> {
    return this.pass("makeDirectory", path, 0, () => this.#disk.makeDirectory(path));
  }
}

/** Lives of a server, some of whose streams' files may not be touched for a while, and what must come of that. */
class History {
  readonly #random: Random;
  readonly #disk: SimulatedDisk;
  readonly #layout = new Layout(DIR);
  readonly #streams = new Map<string, Possible>(NAMES.map((name) => [name, new Set([null])]));
  /** The streams whose files may not be touched, and which of them. */
  readonly #barred = new Map<string, "all" | "segments">();
  /** What this life has in memory, also where it was found to be damaged since. */
  readonly #loaded = new Map<string, StoredStream>();
  readonly #evicts: boolean;
  #written = 0;

  /** With `evicts`, streams also leave memory, as those do that nobody has used for a while. */
  constructor(seed: number, evicts: boolean) {
    this.#evicts = evicts;
    this.#random = new Random(seed);
    this.#disk = new SimulatedDisk(seed);
  }

  async run(): Promise<void> {
    for (let life = this.#random.integer(2, 4); life > 0; life -= 1) await this.#live();
    this.#barred.clear();
    for (const round of [1, 2]) {
      const engine = await this.#open();
      for (const name of NAMES) {
        assert.notEqual(await this.#find(engine, name), undefined, `${name} is still damaged`);
        await this.#look(engine, name);
      }
      await engine.storage.close();
      assert.deepEqual(engine.faults, []);
      assert.equal(listed(await findingsOf(this.#disk, DIR)), "", `round ${round}`);
      assert.deepEqual(
        this.#disk.namesIn(this.#layout.journal).filter((name) => !name.endsWith(".journal")),
        [],
      );
      for (const name of NAMES) {
        // A crash may leave what was to become a notice, or meta.json.damaged: docs/format.md.
        const left = this.#disk
          .namesIn(this.#layout.streamDirectory(name))
          .filter((file) => !/^(meta\.json|meta\.json\.new|meta\.json\.damaged\.new|\d{16}\.seg)$/.test(file));
        assert.deepEqual(left, [], name);
      }
    }
  }

  async #open(): Promise<Engine> {
    for (;;) {
      const files = new WholeFiles(this.#disk.mount());
      files.gate = ({ kind, path }) => (BY_PATH.has(kind) && this.#isBarred(path) ? diskError("EACCES") : undefined);
      const engine = makeEngine({ dir: DIR, files });
      try {
        return await engine.open();
      } catch (error) {
        // A deletion that can't be finished is for whoever sees to the directory.
        assert.ok(error instanceof DirectoryError && this.#barred.size > 0, String(error));
        this.#barred.clear();
      }
    }
  }

  #isBarred(path: string): boolean {
    for (const [name, which] of this.#barred)
      if (path.startsWith(this.#layout.streamDirectory(name)) && (which === "all" || SEGMENT.test(path))) return true;
    return false;
  }

  /** One life: it ends by a crash at any call, or in good order. */
  async #live(): Promise<void> {
    this.#loaded.clear();
    const engine = await this.#open();
    const end = this.#random.pick(["kill", "power", "close"] as const);
    const crashed = new Promise<"crashed">((resolve) => {
      if (end !== "close") this.#disk.crashAfter(this.#random.integer(1, 3000), end, () => resolve("crashed"));
    });
    for (let step = 0; step < 40; step += 1) {
      const ended = await Promise.race([this.#step(engine), crashed]).catch((error: unknown) => {
        // Whoever asks while the disk fails may be told that.
        if (engine.faults.length === 0) throw error;
      });
      if (ended === "crashed") return;
      // The server exits when the disk fails, and so it does when a deleted stream can't be moved out of its place.
      if (engine.faults.length > 0) return this.#disk.crash("kill");
    }
    this.#disk.calm();
    if (end === "close") await engine.storage.close().catch((error: unknown) => assert.ok(engine.faults.length > 0, String(error)));
    else this.#disk.crash(end);
  }

  async #step(engine: Engine): Promise<void> {
    const name = this.#random.pick(NAMES);
    await this.#random.weighted<() => Promise<void>>([
      [4, () => this.#change(engine, name)],
      [1, () => this.#delete(engine, name)],
      [1, () => this.#fill(engine)],
      [1, async () => void this.#barred.set(name, this.#evicts ? this.#random.pick(["all", "segments"] as const) : "all")],
      [1, async () => void this.#barred.delete(name)],
      [1, () => this.#look(engine, name)],
      [this.#evicts ? 2 : 0, () => this.#evict(engine, name)],
    ])();
  }

  /** Finds a stream, and what it can be no more; `undefined` where it can't be had. */
  async #find(engine: Engine, name: string): Promise<StoredStream | null | undefined> {
    const possible = this.#possible(name);
    try {
      const stream = await engine.storage.load(name);
      for (const state of possible) if (stream === null ? state !== null : state?.length !== stream.state.tail) possible.delete(state);
      assert.ok(
        possible.size > 0,
        `${name} is not as it was acknowledged: ${stream === null ? "it is gone" : `it has ${stream.state.tail} bytes`}`,
      );
      if (stream !== null) this.#loaded.set(name, stream);
      return stream;
    } catch (error) {
      if (engine.faults.length > 0) return undefined;
      assert.ok(error instanceof DamagedStreamError, String(error));
      return undefined;
    }
  }

  /** As the registry does it. */
  async #evict({ storage, faults }: Engine, name: string): Promise<void> {
    const stream = this.#loaded.get(name);
    if (stream === undefined) return;
    await storage.persist(stream).catch((error: unknown) => assert.ok(isPassing(error) || faults.length > 0, String(error)));
    if (storage.release(stream)) this.#loaded.delete(name);
  }

  async #look(engine: Engine, name: string): Promise<void> {
    const stream = await this.#find(engine, name);
    if (stream === undefined || stream === null) return;
    const text = await readAll(engine.storage, stream).then(String, (error: unknown) => {
      assert.ok(error instanceof DamagedStreamError || engine.faults.length > 0, String(error));
      return null;
    });
    if (text !== null) assert.ok(this.#possible(name).has(text), `${name} has other bytes than were acknowledged`);
  }

  async #change(engine: Engine, name: string): Promise<void> {
    const stream = await this.#find(engine, name);
    if (stream === undefined) return;
    const text = `${name}${(this.#written += 1)},`.padEnd(this.#random.pick([10, 300, 5000]), ".");
    if (stream === null) await this.#settle(name, startCreate(engine.storage, name, text).outcome, () => text);
    else await this.#settle(name, append(engine.storage, stream, text), (before) => `${before}${text}`);
  }

  async #delete(engine: Engine, name: string): Promise<void> {
    const stream = await this.#find(engine, name);
    if (stream === null) return;
    await this.#settle(name, stream === undefined ? engine.storage.deleteDamaged(name) : remove(engine.storage, stream), () => null);
  }

  async #fill(engine: Engine): Promise<void> {
    const stream = (await engine.storage.load("filler")) ?? startCreate(engine.storage, "filler").stream;
    assert.ok(stream !== null);
    for (let count = 0; count < FILLING; count += 1) await append(engine.storage, stream, "x".repeat(3000));
  }

  /** A change on its way is possible, done or not; a crash leaves it so. */
  async #settle(name: string, outcome: Promise<Outcome | "needed">, change: (before: string | null) => string | null): Promise<void> {
    const before = [...this.#possible(name)];
    const after = before.map(change);
    this.#streams.set(name, new Set([...before, ...after]));
    const how = await outcome;
    if (how === "durable") this.#streams.set(name, new Set(after));
    else if (how !== "storage-unavailable") this.#streams.set(name, new Set(before));
  }

  #possible(name: string): Possible {
    return this.#streams.get(name) ?? assert.fail(name);
  }
}

for (const evicts of [false, true])
  test(
    `streams whose files may not be touched for a while lose nothing to crashes${evicts ? " and evictions" : ""}, and come back from no deletion`,
    { timeout: 400_000 },
    async (context) => {
      const first = Number(process.env["ENVIRONMENT_SEED"] ?? FIRST_SEED);
      const count = Number(process.env["ENVIRONMENT_SEEDS"] ?? SEEDS);
      context.diagnostic(`ENVIRONMENT_SEED=${first}`);
      for (let seed = first; seed < first + count; seed += 1) {
        await new History(seed, evicts).run().catch((error: unknown) => {
          throw new Error(`ENVIRONMENT_SEED=${seed} ENVIRONMENT_SEEDS=1: ${String(error)}`, { cause: error });
        });
      }
    },
  );

/** Histories that have failed once. */
const PINNED = [
  // A crash left the copy of a sidecar half written, and verify did not know the file.
  117019771,
  // A crash left the covered sidecar of a notice that was never put in its place; what a notice was to become.
  1115, 1409, 156676854,
  // A power cut brought back the covered sidecar that had been removed.
  2935,
];

for (const seed of PINNED) test(`the history ${seed}, which failed once, holds`, () => new History(seed, false).run());
