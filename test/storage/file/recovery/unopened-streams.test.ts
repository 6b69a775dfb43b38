import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import type { EngineState } from "../../../../src/storage/file/disk/engine-state.js";
import { StreamRecords, UnopenedStreams } from "../../../../src/storage/file/recovery/unopened-streams.js";
import { DamagedStreamError, StorageBusyError } from "../../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  configOf,
  crash,
  crashAndRecover,
  created,
  forked,
  loaded,
  openEngine,
  openOnFiles,
  readAll,
  remove,
  reopen,
  type Engine,
} from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError, failing, SEGMENT, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";

interface Opening {
  readonly state: EngineState;
  /** Opens all of them. */
  readonly openAll: () => Promise<boolean>;
  readonly clock: ManualClock;
  readonly opened: string[];
  readonly faults: readonly Error[];
  /** What it said that keeps it from a stream. */
  readonly told: string[];
}

const NAMES = Array.from({ length: 100 }, (_, index) => `s${index}`);

/** `errorOf` gives what goes wrong with a stream, as long as something does. */
function opening(errorOf: (name: string) => Error | undefined = () => undefined, clock = new ManualClock()): Opening {
  const records = new Map(NAMES.map((name) => [name, new StreamRecords({ id: name, name, config: configOf() })]));
  const rooms = fileRooms(clock);
  const { state, told, faults } = rooms;
  const unopened = new UnopenedStreams(rooms.parts, 1e6, records, 1);
  const opened: string[] = [];
  const open = async (name: string): Promise<void> => {
    const error = errorOf(name);
    if (error !== undefined) throw error;
    opened.push(name);
  };
  const openAll = (): Promise<boolean> => unopened.openAll(open);
  return { state, openAll, clock, opened, faults, told };
}

async function turn(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

/** What kill -9 leaves of streams that are in their files, with the journal going on from there. */
async function killed(names: readonly string[]): Promise<string> {
  const first = await openEngine();
  for (const name of names) await created(first.storage, name, "in files, ");
  const engine = await reopen(first);
  for (const name of names) await append(engine.storage, await loaded(engine.storage, name), "in the journal");
  return crash(engine);
}

async function openOn(t: TestContext, dir: string, gate: Gate): Promise<Engine> {
  const files = new WatchedFiles();
  files.gate = gate;
  const engine = await openEngine({ dir, files });
  t.after(() => engine.storage.close());
  return engine;
}

async function text({ storage }: Engine, name: string): Promise<string> {
  return (await readAll(storage, await loaded(storage, name))).toString();
}

function isSidecarOf(name: string): (path: string) => boolean {
  return (path) => path.endsWith(join(name, "meta.json"));
}

const BOTH = "in files, in the journal";

describe("a stream that the journal goes on with", () => {
  test("keeps nobody waiting: the others are served, and it is opened for whoever asks", async (t) => {
    const dir = await killed(["slow", "quick"]);
    const disk = new Barrier();
    const engine = await openOn(t, dir, ({ kind, path }) => (kind === "open" && isSidecarOf("slow")(path) ? disk.opened : undefined));
    assert.equal(await text(engine, "quick"), BOTH);
    assert.equal(await append(engine.storage, await loaded(engine.storage, "quick"), "!"), "durable");
    await created(engine.storage, "new", "x");
    await engine.files.idle();
    assert.equal(engine.files.count("rename", /\.spare$|meta\.json/), 0, "the journal is kept until all are open");
    const slow = text(engine, "slow");
    disk.open();
    assert.equal(await slow, BOTH);
    await engine.files.idle();
    assert.deepEqual(readdirSync(join(dir, "journal")).filter((name) => name.endsWith(".spare")).length, 1);
  });

  test("is all there when the process is killed before it was opened, however often", async (t) => {
    let dir = await killed(["slow", "quick"]);
    for (let round = 0; round < 3; round += 1) {
      const files = new WatchedFiles();
      files.gate = ({ kind, path }) => (kind === "open" && isSidecarOf("slow")(path) ? new Barrier().opened : undefined);
      const engine = await openEngine({ dir, files });
      assert.equal(await append(engine.storage, await loaded(engine.storage, "quick"), `${round}`), "durable");
      dir = await crash(engine);
    }
    const engine = await openOn(t, dir, () => undefined);
    assert.deepEqual([await text(engine, "slow"), await text(engine, "quick")], [BOTH, `${BOTH}012`]);
  });

  test("that can't be opened now can be later, and has everything once", async (t) => {
    const dir = await killed(["s"]);
    let code: string | null = "EMFILE";
    const engine = await openOn(t, dir, ({ kind, path }) =>
      code !== null && kind === "open" && isSidecarOf("s")(path) ? diskError(code) : undefined,
    );
    await assert.rejects(engine.storage.load("s"), StorageBusyError);
    code = null;
    assert.equal(await text(engine, "s"), BOTH);
    assert.deepEqual(engine.faults, []);
  });

  test("begins again from its files where the disk got full on the way", async (t) => {
    const first = await openEngine();
    const stream = await created(first.storage, "s", "small, ");
    await append(first.storage, stream, bytesOf(5000)); // past the journal
    const dir = await crash(first);
    let isFull = true;
    const files = new WatchedFiles();
    files.gate = ({ kind, path }) => (isFull && kind === "write" && path.endsWith(".seg") ? diskError("ENOSPC") : undefined);
    const engine = await openEngine({ dir, files });
    await assert.rejects(engine.storage.load("s"), StorageBusyError);
    isFull = false;
    const whole = Buffer.concat([Buffer.from("small, "), bytesOf(5000)]);
    assert.deepEqual(await readAll(engine.storage, await loaded(engine.storage, "s")), whole);
    await append(engine.storage, await loaded(engine.storage, "s"), "!");
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.concat([whole, Buffer.from("!")]));
  });

  test("and of which records were kept leaves nothing in memory by tries that fail", async (t) => {
    const first = await openOnFiles("s", "in files, ");
    await append(first.storage, await loaded(first.storage, "s"), "in the journal");
    first.files.gate = failing("EACCES", ["open"], SEGMENT);
    await first.storage.close();
    assert.equal(readdirSync(join(first.dir, "journal")).filter((name) => name.endsWith(".kept")).length, 1);
    const engine = await openOn(t, first.dir, failing("EMFILE", ["open"], SEGMENT));
    for (let tries = 1; tries <= 3; tries += 1) {
      await engine.files.idle();
      assert.equal(engine.storage.figures().unwrittenBytes, 0, `after ${tries} tries`);
      engine.clock.advance(100);
    }
    engine.files.gate = null;
    engine.clock.advance(100);
    assert.equal(await text(engine, "s"), BOTH);
    assert.deepEqual([engine.storage.figures().unwrittenBytes, engine.faults], [0, []]);
  });

  test("is opened for its forks", async (t) => {
    const first = await openEngine();
    const source = await created(first.storage, "source", "shared");
    await forked(first.storage, source, "fork");
    const engine = await openOn(t, await crash(first), () => undefined);
    assert.equal(await text(engine, "fork"), "shared");
    assert.equal((await loaded(engine.storage, "source")).forkCount, 1);
  });

  test("and that the disk can't read is refused alone: what the journal has of it is kept for a start that can", async (t) => {
    const dir = await killed(["s", "other"]);
    const files = new WatchedFiles();
    files.gate = ({ kind, path }) => (kind === "read" && isSidecarOf("s")(path) ? diskError("EIO") : undefined);
    for (let start = 0; start < 2; start += 1) {
      const engine = await openEngine({ dir, files });
      await engine.files.idle();
      await assert.rejects(engine.storage.load("s"), { name: "DamagedStreamError", message: /meta\.json: it can't be read \(EIO\)$/ });
      assert.equal(await text(engine, "other"), BOTH);
      await engine.storage.close();
      assert.deepEqual(engine.faults, []);
      assert.deepEqual(readdirSync(join(dir, "journal")).filter((name) => name.endsWith(".kept")).length, 1);
    }
    const again = await openOn(t, dir, () => undefined);
    assert.equal(await text(again, "s"), BOTH);
  });

  test("and that the disk can't read keeps no other from starting, where the journal has a deletion of its name", async (t) => {
    for (const [what, isMadeAgain] of [
      ["gone", false],
      ["small", true],
      ["large", true],
    ] as const) {
      const first = await openEngine({ dir: await killed(["s", "other"]) });
      // A kill comes before the directory is moved.
      if (!isMadeAgain)
        first.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("trash") ? new Barrier().opened : undefined);
      assert.equal(await remove(first.storage, await loaded(first.storage, "s")), "durable");
      if (isMadeAgain) await created(first.storage, "s", what === "large" ? bytesOf(9000) : what);
      const dir = await crash(first);
      const engine = await openOn(t, dir, ({ kind, path }) => (kind === "read" && isSidecarOf("s")(path) ? diskError("EIO") : undefined));
      await engine.files.idle();
      assert.equal(await text(engine, "other"), BOTH);
      if (what === "gone") assert.equal(await engine.storage.load("s"), null);
      else if (what === "small") {
        engine.files.gate = null;
        assert.equal(await text(engine, "s"), what);
      } else await assert.rejects(engine.storage.load("s"), { name: "DamagedStreamError" });
      assert.deepEqual(engine.faults, []);
    }
  });

  test("and that the disk can't read can be deleted", async (t) => {
    const dir = await killed(["s"]);
    const engine = await openOn(t, dir, ({ kind, path }) => (kind === "read" && isSidecarOf("s")(path) ? diskError("EIO") : undefined));
    await engine.files.idle();
    assert.equal(await engine.storage.deleteDamaged("s"), "durable");
    await engine.files.idle();
    assert.equal(await engine.storage.load("s"), null);
    assert.deepEqual(engine.faults, []);
  });
});

describe("all streams that the journal goes on with", () => {
  test("are opened, and let others have their turn between", async () => {
    const { openAll, opened } = opening();
    const done = openAll();
    await Promise.resolve();
    await turn();
    assert.ok(opened.length > 0 && opened.length < NAMES.length, `${opened.length} in the first turn`);
    assert.equal(await done, true);
    assert.deepEqual(opened.toSorted(), NAMES.toSorted());
  });

  test("are opened but for a damaged one", async () => {
    const { openAll, opened, faults } = opening((name) =>
      name === "s1" ? new DamagedStreamError(name, "file", "it is missing") : undefined,
    );
    assert.equal(await openAll(), true);
    assert.deepEqual([opened.length, faults], [99, []]);
  });

  test("are tried again where they can't be opened now", async () => {
    let isBusy = true;
    const { openAll, clock, opened } = opening((name) => (isBusy && name === "s3" ? new StorageBusyError("too many files") : undefined));
    const done = openAll();
    while (opened.length < 99) await turn();
    clock.advance(100);
    await turn();
    assert.equal(opened.length, 99);
    isBusy = false;
    clock.advance(100);
    assert.equal(await done, true);
    assert.equal(opened.at(-1), "s3");
  });

  for (const { name, skewMs } of SKEWS) {
    test(`are tried again whenever the timer fires, ${name}`, async () => {
      let isBusy = true;
      const { openAll, clock, opened, told } = opening(
        (name) => (isBusy && name.startsWith("s3") ? new StorageBusyError("busy") : undefined),
        new SkewedClock(skewMs),
      );
      const done = openAll();
      while (told.length < 8) await turn();
      isBusy = false;
      clock.advance(Math.max(0, 100 + skewMs));
      assert.equal(await done, true);
      assert.equal(opened.length, 100);
    });
  }

  test("are opened with word of what keeps one from that", async () => {
    let isFull = true;
    const tried = opening((name) =>
      isFull && name === "s3" ? new StorageBusyError("no room", { cause: diskError("ENOSPC") }) : undefined,
    );
    const done = tried.openAll();
    while (tried.opened.length < 99) await turn();
    assert.deepEqual(tried.told, ["blocked: ENOSPC: as the test wants it"]);
    isFull = false;
    tried.clock.advance(100);
    assert.equal(await done, true);
  });

  test("are left to the next start where the engine closes", async () => {
    const { state, openAll, opened, faults } = opening((name) => (name === "s3" ? new StorageBusyError("too many files") : undefined));
    const done = openAll();
    while (opened.length < 99) await turn();
    state.end();
    assert.equal(await done, false);
    assert.deepEqual(faults, []);
  });

  test("stay as they are when the disk fails, which is told of", async () => {
    const { openAll, opened, faults } = opening((name) => (name === "s40" ? new Error("EIO") : undefined));
    assert.equal(await openAll(), false);
    assert.deepEqual(
      faults.map(({ message }) => message),
      ["EIO"],
    );
    assert.ok(opened.length < 60);
  });

  test("are left alone once that is stopped", async () => {
    const { state, openAll, opened } = opening();
    const done = openAll();
    state.stop();
    assert.equal(await done, false);
    assert.ok(opened.length < 10);
  });
});
