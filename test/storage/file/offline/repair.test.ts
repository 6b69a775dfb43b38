import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { before, describe, test, type TestContext } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { encodeRefusal, isNotice } from "../../../../src/storage/file/format/sidecar.js";
import { repairDirectory, type RepairLine, type RepairSummary } from "../../../../src/storage/file/offline/repair.js";
import { verifyDirectory, type Finding } from "../../../../src/storage/file/offline/verify.js";
import { closedFamily } from "../../../helpers/closed-directory.js";
import {
  append,
  bytesOf,
  changeSidecar,
  copyOf,
  crash,
  created,
  forked,
  keptLog,
  loaded,
  openEngine,
  openOnFiles,
  readAll,
  recordOf,
  remove,
  settled,
  type Engine,
} from "../../../helpers/engine.js";
import { fileIn, flipBit } from "../../../helpers/spoilt-files.js";
import { Barrier, diskError, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";

interface Repaired {
  readonly lines: string[];
  readonly summary: RepairSummary;
}

async function repair(dir: string, apply = true, acceptLoss: readonly string[] = []): Promise<Repaired> {
  const lines: string[] = [];
  const say = ({ kind, stream, file, what }: RepairLine): void =>
    void lines.push(`${kind}: ${stream ?? ""}: ${file.slice(dir.length + 1)}: ${what}`);
  const directory = await openOffline(dir, false);
  const summary = await repairDirectory({ ...directory, apply, acceptLoss, nowMs: 1234, log: keptLog().log, say });
  return { lines, summary };
}

async function findings(dir: string): Promise<string[]> {
  const found: string[] = [];
  const report = ({ stream, file, problem }: Finding): void =>
    void found.push(`${stream ?? ""}: ${file.slice(dir.length + 1)}: ${problem}`);
  await verifyDirectory({ ...(await openOffline(dir, false)), report, progress: () => undefined });
  return found;
}

/** Everything in a directory, by path. */
function contentOf(dir: string): Map<string, string> {
  const paths = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(paths.map((entry) => join(entry.parentPath, entry.name)).map((path) => [path, readFileSync(path, "latin1")]));
}

/** Writes nonsense over the middle of a file: more than one byte is wrong. */
function spoil(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill("?", 60, 110);
  writeFileSync(path, bytes);
}

async function served(t: TestContext, dir: string): Promise<Engine> {
  const engine = await openEngine({ dir });
  t.after(() => engine.storage.close());
  return engine;
}

async function textOf({ storage }: Engine, name: string): Promise<string> {
  return (await readAll(storage, await loaded(storage, name))).toString();
}

describe("a directory that was closed", () => {
  let sound = "";
  before(async () => {
    const { dir, storage } = await openEngine();
    const stream = await created(storage, "chat", "x".repeat(3000), { contentType: "text/plain", ttlSeconds: 60 });
    await append(storage, stream, recordOf("y".repeat(3000), { producer: { id: "p", epoch: 1, seq: 0 } }));
    const json = await created(storage, "json", '{"a":1},\n', { contentType: "application/json" });
    await append(storage, json, "2,\n");
    await created(storage, `long/${"n".repeat(300)}`, "z");
    await storage.close();
    sound = dir;
  });

  /** A copy to do harm to. */
  const copy = (): string => copyOf(sound);

  test("does without an index that is damaged or missing, and serves all that it was of", async (t) => {
    const { dir, storage } = await openEngine({ segmentBytes: 1_048_576 });
    const stream = await created(storage, "s", "");
    let text = "";
    for (let count = 0; count < 3000; count += 1) {
      text += "x".repeat(1 + ((count * 7919) % 251));
      await append(storage, stream, "x".repeat(1 + ((count * 7919) % 251)));
    }
    await storage.close();
    for (const harm of [(path: string) => flipBit(path, 100), (path: string) => rmSync(path)]) {
      const harmed = copyOf(dir);
      harm(fileIn(harmed, ".idx"));
      assert.match((await findings(harmed)).join(), /where the appends from 0 to \d+ ended is lost, the bytes are not/);
      assert.deepEqual((await repair(harmed, false)).summary, { done: 0, toDo: 1, left: 0 });
      const { lines, summary } = await repair(harmed);
      assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
      assert.match(lines.join(), /do without it: reads of what is in the segment at 0 may end within an append/);
      assert.deepEqual(await findings(harmed), []);
      assert.deepEqual((await repair(harmed)).lines, []);
      const engine = await served(t, harmed);
      await append(engine.storage, await loaded(engine.storage, "s"), "y");
      assert.equal(await textOf(engine, "s"), `${text}y`);
    }
  });

  test("leaves an index that can't be read as it is: it is not lost", async () => {
    const { dir, storage } = await openEngine({ maxInlineIndexBytes: 4 });
    const stream = await created(storage, "s", "");
    for (const part of ["one,", "two,", "three,"]) await append(storage, stream, part);
    await storage.close();
    const path = fileIn(dir, ".idx");
    rmSync(path);
    mkdirSync(path);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 1 }, lines.join("\n"));
    assert.match(lines.join(), /left: s: .*\.idx: it can't be read: EISDIR: where the appends from 0 to 14 ended can't be told/);
    assert.match((await findings(dir)).join(), /it can't be read: EISDIR: where the appends from 0 to 14 ended can't be told/);
  });

  test("has a directory set aside at once whose sidecar was damaged, and only takes it for a stream that was never created", async () => {
    const { dir, storage } = await openEngine();
    await created(storage, "s", "x");
    await storage.close();
    const path = fileIn(dir, "s/meta.json");
    changeSidecar(path, () => ({ claimed: true }));
    flipBit(path, 70);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
    assert.match(lines.join(), /done: s: .*: set it aside: it was taken for a stream that was never created/);
    assert.deepEqual((await repair(dir)).lines, []);
    assert.deepEqual(await findings(dir), []);
  });

  test("keeps a stream whose creation is lost with the deletion of the one before it: its files show that it is the later one", async (t) => {
    const engine = await openEngine();
    await remove(engine.storage, await created(engine.storage, "a", "one,"));
    const later = await created(engine.storage, "a", "two,");
    await append(engine.storage, later, "three,");
    await engine.storage.persist(later);
    const dir = await crash(engine);
    const path = fileIn(dir, ".journal");
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, 1024, 2048));
    assert.deepEqual((await repair(dir)).summary, { done: 2, toDo: 0, left: 1 });
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    assert.equal(await textOf(await served(t, dir), "a"), "two,three,");
  });

  test("leaves a sidecar of another stream than the journal's to a person, where the journal is sound", async () => {
    const engine = await openOnFiles("s", "old,");
    await append(engine.storage, await loaded(engine.storage, "s"), "new,");
    const dir = await crash(engine);
    changeSidecar(fileIn(dir, "s/meta.json"), () => ({ id: "b".repeat(24) }));
    const { lines } = await repair(dir);
    assert.match(lines.join(), /left: s: .*meta\.json: it is that of another stream of this name than the journal's/);
    const again = await repair(dir);
    assert.deepEqual([again.summary.done, again.summary.left], [0, 1], again.lines.join("\n"));
    assert.match((await findings(dir)).join(), /it is that of another stream of this name than the journal's/);
  });

  test("needs nothing", async () => {
    const { lines, summary } = await repair(copy());
    assert.deepEqual([lines, summary], [[], { done: 0, toDo: 0, left: 0 }]);
  });

  test("is not changed by saying what would be done", async () => {
    const dir = copy();
    spoil(fileIn(dir, "json/meta.json"));
    flipBit(fileIn(dir, "chat/0000000000000000.seg"), 7);
    const before = contentOf(dir);
    const { lines, summary } = await repair(dir, false);
    assert.deepEqual(contentOf(dir), before);
    assert.deepEqual(summary, { done: 0, toDo: 2, left: 1 });
    assert.ok(lines.every((line) => /^(to do|left): /.test(line)));
  });

  test("gets a sidecar with one wrong byte back as it was", async (t) => {
    const dir = copy();
    const path = fileIn(dir, "chat/meta.json");
    const before = readFileSync(path);
    flipBit(path, 70);
    const damaged = readFileSync(path);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 });
    assert.match(lines[0] ?? "", /^done: chat: .*meta.json: put byte 70 right/);
    assert.deepEqual(readFileSync(path), before);
    assert.deepEqual(readFileSync(path.replace("streams", "damaged/streams")), damaged);
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
    assert.equal((await textOf(await served(t, dir), "chat")).length, 6000);
  });

  for (const [what, harm] of [
    ["lost", rmSync],
    ["spoiled", spoil],
  ] as const) {
    test(`gets a sidecar that is ${what} made anew from the segments, and the stream is closed`, async (t) => {
      const dir = copy();
      harm(fileIn(dir, "json/meta.json"));
      harm(fileIn(dir, "chat/meta.json"));
      const { summary, lines } = await repair(dir);
      assert.deepEqual(summary, { done: 2, toDo: 0, left: 0 });
      assert.match(
        lines.join("\n"),
        /done: chat: .* make it anew with 6000 bytes; .*octet-stream, its lifetime is lost and without end; its producers, .* it is closed/,
      );
      assert.deepEqual(await findings(dir), []);
      const engine = await served(t, dir);
      assert.equal(await textOf(engine, "json"), '{"a":1},\n2,\n');
      assert.equal(await textOf(engine, "chat"), "x".repeat(3000) + "y".repeat(3000));
      const stream = await loaded(engine.storage, "json");
      assert.deepEqual([stream.config.contentType, stream.config.ttlSeconds, stream.state.closed], ["application/json", null, true]);
      assert.equal(existsSync(join(dir, "damaged")), what === "spoiled");
    });
  }

  test("leaves a lost sidecar whose name is cut in the directory's", async () => {
    const dir = copy();
    const path = readdirSync(join(dir, "streams"), { recursive: true, encoding: "utf8" }).find(
      (entry) => entry.includes("~") && entry.endsWith("meta.json"),
    );
    assert.ok(path !== undefined);
    rmSync(join(dir, "streams", path));
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 1 });
    assert.match(lines[0] ?? "", /its name can't be told from its directory/);
  });

  test("sets a damaged segment aside, and the rest of the stream is served", async (t) => {
    const dir = copy();
    const path = fileIn(dir, "chat/0000000000000000.seg");
    flipBit(path, 7);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 1 });
    assert.match(lines.join("\n"), /left: chat: .*positions 0 to 3000 of the stream\ndone: chat: .*0000000000000000.seg: set it aside/);
    assert.ok(existsSync(path.replace("streams", "damaged/streams")) && !existsSync(path));
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    const { storage } = await served(t, dir);
    const stream = await loaded(storage, "chat");
    assert.equal((await readAll(storage, stream, 3000)).toString(), "y".repeat(3000));
    await assert.rejects(async () => storage.read(stream, 0, 10), DamagedStreamError);
    assert.equal(await append(storage, stream, "more"), "durable");
  });

  test("refuses an open stream whose last segment is damaged, until its files are put back", async (t) => {
    const dir = copy();
    const path = fileIn(dir, "chat/0000000000003000.seg");
    const meta = fileIn(dir, "chat/meta.json");
    const [segmentBefore, metaBefore] = [readFileSync(path), readFileSync(meta)];
    truncateSync(path, 2999);
    const { summary } = await repair(dir);
    assert.deepEqual(summary, { done: 2, toDo: 0, left: 1 });
    assert.match((await findings(dir)).join(), /chat: .*meta.json: its last segment is lost/);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    const engine = await openEngine({ dir });
    await assert.rejects(engine.storage.load("chat"), /its last segment is lost/);
    await engine.storage.close();
    assert.deepEqual(readFileSync(meta.replace("streams", "damaged/streams")), metaBefore);
    renameSync(meta.replace("streams", "damaged/streams"), meta);
    writeFileSync(path, segmentBefore);
    assert.deepEqual(await findings(dir), []);
    assert.equal((await textOf(await served(t, dir), "chat")).length, 6000);
  });

  test("leaves a stream whose last segment can't be read as it is: it is not lost", async (t) => {
    const dir = copy();
    const path = fileIn(dir, "chat/0000000000003000.seg");
    renameSync(path, join(dir, "away"));
    mkdirSync(path);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 1 }, lines.join("\n"));
    assert.match(lines[0] ?? "", /^left: chat: .*0000000000003000.seg: out of reach: it can't be read: EISDIR/);
    rmSync(path, { recursive: true });
    renameSync(join(dir, "away"), path);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
    const engine = await served(t, dir);
    assert.equal((await textOf(engine, "chat")).length, 6000);
    assert.equal(await append(engine.storage, await loaded(engine.storage, "chat"), "more"), "durable");
  });

  test("leaves a journal that is gone, and a journal of another directory", async () => {
    const dir = copy();
    const journal = fileIn(join(dir, "journal"), ".journal");
    const other = await openEngine();
    await other.storage.close();
    cpSync(fileIn(join(other.dir, "journal"), ".journal"), journal);
    assert.match((await repair(dir)).lines.join(), /^left: : journal\/\d+\.journal: it belongs to another directory/);
    rmSync(journal);
    assert.match((await repair(dir)).lines.join(), /^left: : journal: the journal is missing/);
  });

  for (const byte of [0, 3, 5, 8, 11, 12, 15, 18, 23, 28, 31, 34, 39, 42, 45, 47]) {
    test(`goes on from the sidecars when byte ${byte} of the journal's only frame is wrong in a bit`, async () => {
      const dir = copy();
      flipBit(fileIn(join(dir, "journal"), ".journal"), byte);
      await assert.rejects(openEngine({ dir }), /journal file .* is damaged at byte 0: it has no sound record/);
      assert.match((await findings(dir)).join(), /^: journal\/\d+\.journal: it has no sound record; nothing can have been lost in it$/);
      const { lines, summary } = await repair(dir);
      assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
      assert.match(
        lines[0] ?? "",
        /nothing can have been lost in it; the streams' own files hold all up to batch \d+, and go on from there/,
      );
      assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    });
  }

  test("serves a stream whose last segment is lost without it, once that is accepted", async (t) => {
    const dir = copy();
    truncateSync(fileIn(dir, "chat/0000000000003000.seg"), 2999);
    const planned = await repair(dir, false, ["ch*"]);
    assert.match(planned.lines.at(-1) ?? "", /^to do: chat: .*: serve it again with what there is, as its loss is accepted$/);
    const { lines } = await repair(dir, true, ["chat"]);
    assert.match(
      lines.at(-1) ?? "",
      /^done: chat: .*: serve "chat" again with 3000 bytes, as its loss is accepted: positions from 3000 on are given out again$/,
    );
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    const engine = await served(t, dir);
    assert.equal(await textOf(engine, "chat"), "x".repeat(3000));
    assert.equal(await append(engine.storage, await loaded(engine.storage, "chat"), "more"), "durable");
  });

  test("sets what keeps accepted losses aside where it is spoilt", async () => {
    const dir = copy();
    writeFileSync(join(dirname(fileIn(dir, "json/meta.json")), "losses.json"), "{}");
    assert.match((await findings(dir)).join(), /json: .*losses\.json: it is not whole/);
    assert.match((await repair(dir)).lines.join(), /^done: json: .*losses\.json: set it aside: it is not whole$/);
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
  });

  test("leaves a directory with another name, and one that another version wrote", async () => {
    const dir = copy();
    const directory = dirname(fileIn(dir, "chat/meta.json"));
    renameSync(directory, join(dirname(directory), "chet"));
    const json = fileIn(dir, "json/meta.json");
    writeFileSync(json, readFileSync(json, "utf8").replace('"format": 1', '"format": 22'));
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 2 });
    assert.match(lines.join("\n"), /chet: the directory is not the one for this name/);
    assert.match(lines.join("\n"), /format 22 is not known/);
  });
});

describe("a directory after kill -9", () => {
  /** Streams with their data in the journal: one batch each. */
  async function crashed(): Promise<string> {
    const engine = await openEngine();
    const { storage } = engine;
    const streams = [];
    for (const name of ["a", "b", "c"]) streams.push(await created(storage, name, `${name}1,`));
    for (const round of [2, 3]) for (const stream of streams) await append(storage, stream, `${stream.name}${round},`);
    await remove(storage, await created(storage, "gone", "x"));
    return crash(engine);
  }

  /** Where the frames of the journal begin, in order. */
  function framesOf(path: string): number[] {
    const bytes = readFileSync(path);
    const offsets: number[] = [];
    for (let offset = 0; offset < bytes.length; offset += 512)
      if (bytes.toString("latin1", offset, offset + 4) === "SDJ1") offsets.push(offset);
    return offsets;
  }

  test("is recovered as by a start, and its journal is freed", async (t) => {
    const dir = await crashed();
    assert.deepEqual((await repair(dir, false)).summary, { done: 0, toDo: 1, left: 0 });
    const { summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 });
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
    const engine = await served(t, dir);
    for (const name of ["a", "b", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
    assert.equal(await engine.storage.load("gone"), null);
    assert.equal(await append(engine.storage, await loaded(engine.storage, "a"), "more"), "durable");
  });

  test("keeps a damaged journal whole, applies what is sound, and refuses the streams that lost records", async (t) => {
    const dir = await crashed();
    const journal = fileIn(join(dir, "journal"), ".journal");
    const offsets = framesOf(journal);
    flipBit(journal, (offsets[5] ?? 0) + 81); // the second append of b, behind the empty frame and three creations
    const whole = readFileSync(journal);
    const [finding] = await findings(dir);
    assert.match(
      finding ?? "",
      /sound records follow at byte \d+; it seems to hold records of "b"; records behind it are of "c", "a", "b", "gone"/,
    );
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 3, toDo: 0, left: 2 }, lines.join("\n"));
    assert.deepEqual(readFileSync(join(dir, "damaged/journal", basename(journal))), whole);
    assert.match((await findings(dir)).join("\n"), /^b: .*meta.json: records of it from position 3 on are lost, [^\n]*$/);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    const engine = await served(t, dir);
    for (const name of ["a", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
    await assert.rejects(engine.storage.load("b"), /from position 3 on are lost/);
    assert.equal(await engine.storage.load("gone"), null);
  });

  test("refuses a stream whose creation is lost: its name is not free until that is accepted", async (t) => {
    const dir = await crashed();
    const journal = fileIn(join(dir, "journal"), ".journal");
    flipBit(journal, (framesOf(journal)[2] ?? 0) + 60); // the creation of b
    const { lines } = await repair(dir);
    assert.match(lines.join("\n"), /left: b: .*: its creation is lost, with all that it had/);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    assert.match((await findings(dir)).join("\n"), /^b: .*: its creation is lost[^\n]*$/);
    assert.match(
      (await repair(dir, true, ["b"])).lines.join("\n"),
      /^done: b: .*: give it up, as its loss is accepted: nothing of it is left, and its name is free$/,
    );
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    const engine = await served(t, dir);
    assert.equal(await engine.storage.load("b"), null);
    for (const name of ["a", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
  });

  test("takes what a stream's sidecar is ahead of the journal for a journal that has lost its end", async () => {
    const engine = await openOnFiles("quiet", "x");
    const stream = await created(engine.storage, "s", "1");
    await append(engine.storage, stream, "2");
    await engine.storage.persist(stream);
    const dir = await crash(engine);
    const journal = fileIn(join(dir, "journal"), ".journal");
    const bytes = readFileSync(journal);
    writeFileSync(journal, bytes.fill(0, framesOf(journal)[1] ?? 0));
    assert.match((await findings(dir)).join(), /s: .*meta\.json: it is of batch \d+, but the journal ends with batch \d+/);
    const { lines } = await repair(dir);
    assert.match(lines.join("\n"), /it ends with batch \d+, but a meta\.json holds batch \d+; it may hold records of any stream/);
    assert.deepEqual((await repair(dir)).lines.map((line) => line.slice(0, 12)).sort(), ["left: quiet:", "left: s: str"]);
    assert.equal((await repair(dir, true, ["**"])).summary.left, 0);
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
  });

  test("loses nothing with the sidecar of a stream that the journal has whole", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "big", "x");
    await append(engine.storage, stream, "y".repeat(5000)); // past the journal
    const dir = await crash(engine);
    spoil(fileIn(dir, "big/meta.json"));
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 2, toDo: 0, left: 0 }, lines.join("\n"));
    assert.deepEqual(await findings(dir), []);
    const again = await served(t, dir);
    assert.equal(await textOf(again, "big"), `x${"y".repeat(5000)}`);
    assert.equal((await loaded(again.storage, "big")).state.closed, false);
  });

  test("finds the end of a stream in the journal when its sidecar is lost", async (t) => {
    const engine = await openOnFiles("s", "one,", { contentType: "text/plain" });
    const stream = await loaded(engine.storage, "s");
    await append(engine.storage, stream, "two,");
    const dir = await crash(engine);
    rmSync(fileIn(dir, "s/meta.json"));
    assert.match((await findings(dir)).join(), /s: .*meta.json: it is missing/);
    const { summary } = await repair(dir);
    assert.deepEqual(summary, { done: 2, toDo: 0, left: 0 });
    const again = await served(t, dir);
    const found = await loaded(again.storage, "s");
    assert.equal(await textOf(again, "s"), "one,two,");
    assert.deepEqual([found.config.contentType, found.state.closed, found.id], ["text/plain", true, stream.id]);
  });

  /** What was kept of the journal was set aside by a repair, or by hand. */
  function setKeptAside(dir: string): void {
    mkdirSync(join(dir, "damaged/journal"), { recursive: true });
    for (const name of readdirSync(join(dir, "journal")).filter((file) => file.endsWith(".kept")))
      renameSync(join(dir, "journal", name), join(dir, "damaged/journal", name));
  }

  for (const [what, harm, isClosed, isAside] of [
    ["spoiled", spoil, true, false],
    ["wrong in one byte", (path: string) => flipBit(path, 70), false, false],
    ["spoiled", spoil, true, true],
    ["wrong in one byte", (path: string) => flipBit(path, 70), false, true],
  ] as const) {
    test(`applies what a start of the server kept for a stream whose sidecar was ${what}${isAside ? ", also set aside" : ""}`, async (t) => {
      const engine = await openOnFiles("s", "one,", { contentType: "text/plain" });
      await append(engine.storage, await loaded(engine.storage, "s"), "two,");
      await created(engine.storage, "other", "x");
      const dir = await crash(engine);
      harm(fileIn(dir, "s/meta.json"));
      const server = await openEngine({ dir });
      await assert.rejects(server.storage.load("s"), DamagedStreamError);
      await append(server.storage, await loaded(server.storage, "other"), "y");
      await server.storage.close();
      if (isAside) setKeptAside(dir);
      const { lines, summary } = await repair(dir);
      assert.deepEqual(summary, { done: 2, toDo: 0, left: 0 }, lines.join("\n"));
      assert.match(
        lines[1] ?? "",
        isAside ? /^done: s: .*apply 1 records that were set aside/ : /^done: : journal: apply 1 records to 1 streams/,
      );
      assert.deepEqual(await findings(dir), []);
      assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
      const again = await served(t, dir);
      assert.equal(await textOf(again, "s"), "one,two,");
      assert.equal(await textOf(again, "other"), "xy");
      assert.equal((await loaded(again.storage, "s")).state.closed, isClosed);
    });
  }

  for (const [place, offset] of [
    ["its first frame", 60],
    ["its last record", 572],
    ["its end", 1030],
  ] as const) {
    test(`with a wrong bit in what was kept, in ${place}, is served only after a repair that says so`, async () => {
      const engine = await openOnFiles("s", "one,");
      for (const text of ["two,", "three,"]) await append(engine.storage, await loaded(engine.storage, "s"), text);
      engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError("EACCES") : undefined);
      await engine.storage.close();
      const { dir } = engine;
      const kept = fileIn(dir, ".kept");
      flipBit(kept, offset);
      const whole = readFileSync(kept);
      await assert.rejects(openEngine({ dir }), new RegExp(`${kept} is damaged at byte \\d+`));
      assert.match((await findings(dir)).join(), /\.kept/);
      const { lines, summary } = await repair(dir);
      assert.equal(summary.toDo, 0, lines.join("\n"));
      assert.equal(summary.left > 0, place !== "its end", lines.join("\n"));
      assert.deepEqual(readFileSync(join(dir, "damaged/journal", basename(kept))), whole);
      const again = await repair(dir);
      assert.equal(again.summary.done, 0, again.lines.join("\n"));
      const after = await openEngine({ dir });
      const text = await loaded(after.storage, "s").then(
        (stream) => readAll(after.storage, stream).then(String),
        () => "refused",
      );
      assert.equal(text, place === "its end" ? "one,two,three," : "refused", lines.join("\n"));
      await after.storage.close();
    });
  }

  for (const isUnborn of [false, true]) {
    test(`never brings back a stream that was deleted while its files could not be written${isUnborn ? ", and that has none" : ""}`, async () => {
      const engine = isUnborn ? await openEngine() : await openOnFiles("s", "one,");
      if (isUnborn) await created(engine.storage, "s", "");
      await append(engine.storage, await loaded(engine.storage, "s"), "two,");
      engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError("EACCES") : undefined);
      await engine.storage.close();
      assert.ok(isNotice(readFileSync(fileIn(engine.dir, "s/meta.json"))));
      const files = new WatchedFiles();
      const barred: Gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError("EACCES") : undefined);
      files.gate = barred;
      const server = await openEngine({ dir: engine.dir, files });
      await assert.rejects(server.storage.load("s"), DamagedStreamError);
      await files.idle();
      files.gate = (operation) => (operation.kind === "rename" && operation.path.endsWith("/s") ? new Barrier().opened : barred(operation));
      assert.equal(await server.storage.deleteDamaged("s"), "durable");
      const dir = await crash(server);
      assert.deepEqual(await findings(dir), []);
      const { lines, summary } = await repair(dir);
      assert.deepEqual([summary.toDo, summary.left], [0, 0], lines.join("\n"));
      assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
      assert.deepEqual(await findings(dir), []);
      const after = await openEngine({ dir });
      assert.equal(await after.storage.load("s"), null);
      await after.storage.close();
      assert.deepEqual(
        readdirSync(join(dir, "journal")).filter((name) => name.endsWith(".kept")),
        [],
      );
    });
  }

  test("never applies what was set aside to another stream of the name", async () => {
    const engine = await openOnFiles("s", "one,");
    await append(engine.storage, await loaded(engine.storage, "s"), "two,");
    const dir = await crash(engine);
    spoil(fileIn(dir, "s/meta.json"));
    const server = await openEngine({ dir });
    await server.storage.close();
    setKeptAside(dir);
    rmSync(dirname(fileIn(dir, "s/meta.json")), { recursive: true });
    const successor = await openEngine({ dir });
    await created(successor.storage, "s", "another,");
    await successor.storage.close();
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
    rmSync(fileIn(dir, "s/meta.json"));
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 1 });
    assert.match(lines[0] ?? "", /nobody can tell whether they are its own/);
  });
});

describe("a directory with forks", () => {
  let sound = "";
  const texts = {
    source: "x".repeat(3000) + "y".repeat(3000),
    left: `${"x".repeat(3000)}${"y".repeat(1000)}left`,
    leaf: `${"x".repeat(2000)}leaf`,
  };
  let ids: Readonly<Record<string, string>> = {};
  before(async () => {
    ({ dir: sound, ids } = await closedFamily());
  });

  function copy(harm: (dir: string) => void): string {
    const dir = copyOf(sound);
    harm(dir);
    return dir;
  }

  const meta = (dir: string, name: string): string => fileIn(dir, `${name}/meta.json`);

  async function assertWhole(t: TestContext, dir: string): Promise<Engine> {
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).lines, []);
    const engine = await served(t, dir);
    for (const [name, text] of Object.entries(texts)) assert.equal(await textOf(engine, name), text, name);
    for (const [name, id] of Object.entries(ids)) assert.equal((await loaded(engine.storage, name)).id, id, name);
    return engine;
  }

  for (const [what, harm] of [
    ["lost", rmSync],
    ["spoiled", spoil],
  ] as const) {
    for (const name of ["source", "left", "leaf"]) {
      test(`gets the sidecar of ${name} made anew when it is ${what}: its relatives know which stream it was`, async (t) => {
        const dir = copy((target) => harm(meta(target, name)));
        const planned = await repair(dir, false);
        assert.deepEqual(planned.summary, { done: 0, toDo: 1, left: 0 }, planned.lines.join("\n"));
        const { summary, lines } = await repair(dir);
        assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
        if (name !== "source")
          assert.match(lines[0] ?? "", /whether it has dropped any of what it shares with "\w+" is not known: it has all of it from 0 on/);
        if (name !== "leaf") assert.match(lines[0] ?? "", /if it was deleted and kept for its forks, delete it again/);
        await assertWhole(t, dir);
      });
    }
  }

  test("gets a missing reference put back, a wrong one right, and one to nobody taken off", async (t) => {
    const dir = copy((target) => {
      changeSidecar(meta(target, "source"), () => ({ forks: new Map([["0".repeat(24), 5]]) }));
      changeSidecar(meta(target, "left"), () => ({ forks: new Map([[ids["leaf"] ?? "", 7]]) }));
    });
    const planned = await repair(dir, false);
    const { summary, lines } = await repair(dir);
    assert.deepEqual(summary, { done: 3, toDo: 0, left: 0 }, lines.join("\n"));
    assert.deepEqual(
      planned.lines,
      lines.map((line) => line.replace("done", "to do")),
    );
    assert.match(lines.join("\n"), /done: source: .*: put its list of forks right: it does not know its fork "left"/);
    assert.match(lines.join("\n"), /done: source: .*: take a fork off its list: it lists the fork 0{24}, which is nowhere/);
    assert.match(lines.join("\n"), /done: left: .*: put its list of forks right: it keeps its bytes before 7 for its fork "leaf"/);
    await assertWhole(t, dir);
  });

  test("takes no reference off while one of the streams that can't be read may be the fork", async (t) => {
    const dir = copy((target) => writeFileSync(meta(target, "leaf"), encodeRefusal("why not")));
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    cpSync(meta(sound, "leaf"), meta(dir, "leaf"));
    await assertWhole(t, dir);
  });

  test("gets two sidecars made anew at once where one that is put right tells of the other", async (t) => {
    const two = copy((target) => {
      rmSync(meta(target, "leaf"));
      rmSync(meta(target, "source"));
    });
    assert.deepEqual((await repair(two, false)).summary, { done: 0, toDo: 2, left: 0 });
    const { lines, summary } = await repair(two);
    assert.deepEqual([summary.left, summary.done], [0, 2], lines.join("\n"));
    assert.deepEqual((await repair(two)).lines, []);
    await assertWhole(t, two);
  });

  test("leaves what nobody can tell: which of two lost forks is which, and whose bytes a source has that forks disagree on", async () => {
    const alike = await openEngine();
    const source = await created(alike.storage, "source", bytesOf(100));
    for (const name of ["one", "two"]) await forked(alike.storage, source, name, 50, name);
    await alike.storage.close();
    for (const name of ["one", "two"]) rmSync(meta(alike.dir, name));
    const { lines, summary } = await repair(alike.dir);
    assert.deepEqual(summary, { done: 0, toDo: 0, left: 2 }, lines.join("\n"));
    assert.match(lines.join("\n"), /left: one: .*it may be a fork of "source", and nobody can tell: put it back from a copy/);
    assert.deepEqual((await repair(alike.dir)).lines, lines, "nor can the next run");
    const strange = copy((target) =>
      changeSidecar(meta(target, "leaf"), ({ config }) => ({
        config: { ...config, forkedFrom: config.forkedFrom && { ...config.forkedFrom, name: "source", id: "f".repeat(24) } },
      })),
    );
    rmSync(meta(strange, "source"));
    assert.match(
      (await repair(strange)).lines.join("\n"),
      /left: source: .*streams were forked from \w+ and \w+ of this name, and nobody can tell whether this is it/,
    );
  });

  test("leaves a source of which not all is there that its fork shares", async () => {
    const dir = copy((target) => {
      rmSync(meta(target, "source"));
      rmSync(fileIn(target, "source/0000000000003000.seg"));
    });
    const { lines, summary } = await repair(dir);
    assert.deepEqual([summary.done, summary.left], [0, 2], lines.join("\n"));
    assert.match(lines[0] ?? "", /its segments end at 3000, but a fork of it begins at 4000/);
    assert.match(lines[1] ?? "", /its forks can't be read without it: "left"/);
  });

  test("closes an open source whose last segment is lost: its forks read what is there", async (t) => {
    const dir = copy((target) => flipBit(fileIn(target, "source/0000000000003000.seg"), 7));
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 2, toDo: 0, left: 1 }, lines.join("\n"));
    assert.match(
      lines.join("\n"),
      /left: source: .*which its forks share: "left"\n.*\ndone: source: .*: close the stream, which its forks need, and keep its sidecar/,
    );
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    const engine = await served(t, dir);
    assert.equal(await textOf(engine, "leaf"), texts.leaf);
    assert.equal((await loaded(engine.storage, "source")).state.closed, true);
    const left = await loaded(engine.storage, "left");
    assert.equal((await readAll(engine.storage, left, 4000)).toString(), "left");
    await assert.rejects(async () => engine.storage.read(left, 3000, 10), DamagedStreamError);
  });

  test("is recovered after kill -9 as by a start, with all that became of its forks", async (t) => {
    const first = await openEngine();
    const source = await created(first.storage, "source", bytesOf(3000, 1));
    await append(first.storage, source, bytesOf(3000, 2));
    const old = await forked(first.storage, source, "old", 3000, "old");
    await first.storage.close();
    const engine = await openEngine({ dir: first.dir });
    const { storage } = engine;
    const again = await loaded(storage, "source");
    await forked(storage, again, "left", 4000, bytesOf(5000, 3));
    const weaned = await loaded(storage, "old");
    await append(storage, weaned, bytesOf(5000, 4));
    storage.trim(weaned, 3000);
    await settled(storage, weaned);
    await remove(storage, await forked(storage, again, "gone"));
    assert.equal(await remove(storage, again), "durable");
    const dir = await crash(engine);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).lines, []);
    const repaired = await served(t, dir);
    const kept = await loaded(repaired.storage, "source");
    assert.deepEqual([kept.standing, kept.forkCount, kept.id], ["kept", 2, source.id]);
    const left = await loaded(repaired.storage, "left");
    assert.deepEqual(
      await readAll(repaired.storage, left),
      Buffer.concat([bytesOf(3000, 1), bytesOf(3000, 2).subarray(0, 1000), bytesOf(5000, 3)]),
    );
    assert.deepEqual([(await loaded(repaired.storage, "old")).earliest, old.id], [3000, weaned.id]);
  });

  for (const name of ["source", "left"]) {
    test(`loses nothing of who was forked from whom with the sidecar of ${name} when the journal goes on with it`, async (t) => {
      const before = await openEngine({ dir: copy(() => undefined) });
      for (const known of Object.keys(texts)) await append(before.storage, await loaded(before.storage, known), "!");
      const dir = await crash(before);
      rmSync(meta(dir, name));
      const { summary, lines } = await repair(dir);
      assert.deepEqual(summary, { done: 2, toDo: 0, left: 0 }, lines.join("\n"));
      assert.deepEqual(await findings(dir), []);
      const engine = await served(t, dir);
      for (const [known, text] of Object.entries(texts)) assert.equal(await textOf(engine, known), `${text}!`, known);
    });
  }
});
