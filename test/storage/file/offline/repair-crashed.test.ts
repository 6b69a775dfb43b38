import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { isNotice } from "../../../../src/storage/file/format/sidecar.js";
import { findings, repair, textOf } from "../../../helpers/repaired-directory.js";
import { framesOf, journalFiles } from "../../../helpers/several-journal-files.js";
import { append, crash, created, loaded, openEngine, openFor, openOnFiles, readAll, remove } from "../../../helpers/engine.js";
import { fileIn, flipBit, spoil } from "../../../helpers/spoilt-files.js";
import { Barrier, diskError, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";

/** Turns a bit around in a frame of the journal, counted from the last one. */
function harmFrame(dir: string, index: number): void {
  // Other files may be ready, or still be there.
  const journal = journalFiles(dir).findLast((path) => path.endsWith(".journal") && framesOf(path).offsets.length > 1) ?? "";
  flipBit(journal, (framesOf(journal).offsets.at(index) ?? 0) + 81);
}

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

  test("is recovered as by a start, and its journal is freed", async (t) => {
    const dir = await crashed();
    assert.deepEqual((await repair(dir, false)).summary, { done: 0, toDo: 1, left: 0 });
    const { summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 });
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 0 });
    const engine = await openFor(t, { dir });
    for (const name of ["a", "b", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
    assert.equal(await engine.storage.load("gone"), null);
    assert.equal(await append(engine.storage, await loaded(engine.storage, "a"), "more"), "durable");
  });

  test("keeps a damaged journal whole, applies what is sound, and refuses the streams that lost records", async (t) => {
    const dir = await crashed();
    const journal = fileIn(join(dir, "journal"), ".journal");
    const offsets = framesOf(journal).offsets;
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
    const engine = await openFor(t, { dir });
    for (const name of ["a", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
    await assert.rejects(engine.storage.load("b"), /from position 3 on are lost/);
    assert.equal(await engine.storage.load("gone"), null);
  });

  test("finishes a deletion behind damage that names its stream, also where nobody can read whose files are there", async (t) => {
    const engine = await openOnFiles("s", "old,");
    const { storage, files } = engine;
    files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith("/s") ? new Barrier().opened : undefined);
    const stream = await loaded(storage, "s");
    await append(storage, stream, "more,");
    await remove(storage, stream);
    const dir = await crash(engine);
    harmFrame(dir, -2); // the append, which says what the deletion's handle stands for
    flipBit(fileIn(dir, "s/meta.json"), 70);
    await repair(dir);
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    assert.equal(await (await openFor(t, { dir })).storage.load("s"), null);
  });

  test("is rid of a stream whose deletion is damaged, where the journal has another one of the name behind that", async (t) => {
    const engine = await openOnFiles("s", "old,");
    const { storage, files } = engine;
    // The deletion is durable, and its directory still there.
    files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith("/s") ? new Barrier().opened : undefined);
    await remove(storage, await loaded(storage, "s"));
    await created(storage, "s", "new,");
    const dir = await crash(engine);
    harmFrame(dir, -2);
    assert.match((await findings(dir)).join("\n"), /^: [^\n]*: sound records follow at byte \d+[^\n]*$/, "the files are as they should be");
    const { lines } = await repair(dir);
    assert.match(lines.join("\n"), /done: s: .*: set it aside: it is that of an earlier stream of this name, which was deleted/);
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    assert.equal(await textOf(await openFor(t, { dir }), "s"), "new,");
  });

  test("refuses a stream whose creation is lost: its name is not free until that is accepted", async (t) => {
    const dir = await crashed();
    const journal = fileIn(join(dir, "journal"), ".journal");
    flipBit(journal, (framesOf(journal).offsets[2] ?? 0) + 60); // the creation of b
    const { lines } = await repair(dir);
    assert.match(lines.join("\n"), /left: b: .*: its creation is lost, with all that it had/);
    assert.deepEqual((await repair(dir)).summary, { done: 0, toDo: 0, left: 1 });
    assert.match((await findings(dir)).join("\n"), /^b: .*: its creation is lost[^\n]*$/);
    assert.match(
      (await repair(dir, true, ["b"])).lines.join("\n"),
      /^done: b: .*: give it up, as its loss is accepted: nothing of it is left, and its name is free$/,
    );
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    const engine = await openFor(t, { dir });
    assert.equal(await engine.storage.load("b"), null);
    for (const name of ["a", "c"]) assert.equal(await textOf(engine, name), `${name}1,${name}2,${name}3,`);
  });

  test("never serves an earlier stream of the name in place of one whose creation is lost", async (t) => {
    const first = await openEngine();
    await append(first.storage, await created(first.storage, "b", "x".repeat(3000)), "y".repeat(3000));
    await first.storage.close();
    rmSync(fileIn(first.dir, "b/0000000000003000.seg"));
    await repair(first.dir);
    assert.match((await repair(first.dir, true, ["b"])).lines.join(), /serve "b" again with 3000 bytes/);
    const again = await openEngine({ dir: first.dir });
    await remove(again.storage, await loaded(again.storage, "b"));
    await append(again.storage, await created(again.storage, "b", "1,"), "2,");
    const dir = await crash(again);
    const journal = fileIn(join(dir, "journal"), ".journal");
    const offsets = framesOf(journal).offsets;
    flipBit(journal, (offsets.at(-2) ?? 0) + 60); // the creation of the later b
    const { lines } = await repair(dir);
    assert.match(lines.join("\n"), /left: b: .*: its creation is lost, with all that it had/);
    assert.match((await repair(dir, true, ["b"])).lines.join("\n"), /give it up, .*: nothing of it is left, and its name is free$/);
    assert.deepEqual([(await repair(dir)).lines, await findings(dir)], [[], []]);
    assert.equal(await (await openFor(t, { dir })).storage.load("b"), null);
  });

  test("takes what a stream's sidecar is ahead of the journal for a journal that has lost its end", async () => {
    const engine = await openOnFiles("quiet", "x");
    const stream = await created(engine.storage, "s", "1");
    await append(engine.storage, stream, "2");
    await engine.storage.persist(stream);
    const dir = await crash(engine);
    const journal = fileIn(join(dir, "journal"), ".journal");
    const bytes = readFileSync(journal);
    writeFileSync(journal, bytes.fill(0, framesOf(journal).offsets[1] ?? 0));
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
    const again = await openFor(t, { dir });
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
    const again = await openFor(t, { dir });
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
      const again = await openFor(t, { dir });
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
