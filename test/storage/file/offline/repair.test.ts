import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, test } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { findings, repair, textOf } from "../../../helpers/repaired-directory.js";
import {
  append,
  changeSidecar,
  copyOf,
  crash,
  created,
  loaded,
  openEngine,
  openFor,
  openOnFiles,
  readAll,
  recordOf,
  remove,
} from "../../../helpers/engine.js";
import { fileIn, flipBit, spoil } from "../../../helpers/spoilt-files.js";

/** Everything in a directory, by path. */
function contentOf(dir: string): Map<string, string> {
  const paths = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(paths.map((entry) => join(entry.parentPath, entry.name)).map((path) => [path, readFileSync(path, "latin1")]));
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
      const engine = await openFor(t, { dir: harmed });
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
    assert.equal(await textOf(await openFor(t, { dir }), "a"), "two,three,");
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
    assert.equal((await textOf(await openFor(t, { dir }), "chat")).length, 6000);
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
      const engine = await openFor(t, { dir });
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
    const { storage } = await openFor(t, { dir });
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
    assert.equal((await textOf(await openFor(t, { dir }), "chat")).length, 6000);
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
    const engine = await openFor(t, { dir });
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
    const engine = await openFor(t, { dir });
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
