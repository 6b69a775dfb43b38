import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { StorageBusyError } from "../../../../src/storage/storage.js";
import { append, bytesOf, crash, crashAndRecover, created, forked, loaded, openEngine, readAll, reopen, type Engine } from "../../../helpers/engine.js";
import { Barrier, diskError, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";

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
    const engine = await openOn(t, dir, ({ kind, path }) => (code !== null && kind === "open" && isSidecarOf("s")(path) ? diskError(code) : undefined));
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

  test("is opened for its forks", async (t) => {
    const first = await openEngine();
    const source = await created(first.storage, "source", "shared");
    await forked(first.storage, source, "fork");
    const engine = await openOn(t, await crash(first), () => undefined);
    assert.equal(await text(engine, "fork"), "shared");
    assert.equal((await loaded(engine.storage, "source")).forkCount, 1);
  });

  test("and that the disk can't read ends the engine", async () => {
    const dir = await killed(["s"]);
    const files = new WatchedFiles();
    files.gate = ({ kind, path }) => (kind === "read" && isSidecarOf("s")(path) ? diskError("EIO") : undefined);
    const engine = await openEngine({ dir, files });
    await engine.files.idle();
    assert.deepEqual(engine.faults.map(({ message }) => /meta\.json can't be read \(EIO\)$/.test(message)), [true]);
    files.gate = null;
    await engine.storage.close();
    const again = await openEngine({ dir });
    assert.equal(await text(again, "s"), BOTH);
    await again.storage.close();
  });
});
