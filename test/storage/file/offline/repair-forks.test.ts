import assert from "node:assert/strict";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { before, describe, test, type TestContext } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { encodeRefusal } from "../../../../src/storage/file/format/sidecar.js";
import { findings, repair, textOf } from "../../../helpers/repaired-directory.js";
import { closedFamily } from "../../../helpers/closed-directory.js";
import {
  append,
  bytesOf,
  changeSidecar,
  copyOf,
  crash,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  readAll,
  remove,
  settled,
  type Engine,
} from "../../../helpers/engine.js";
import { fileIn, flipBit, spoil } from "../../../helpers/spoilt-files.js";
import { trimBefore } from "../../../helpers/trim.js";

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
    const engine = await openFor(t, { dir });
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
    const engine = await openFor(t, { dir });
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
    trimBefore(storage, weaned, 3000);
    await settled(storage, weaned);
    await remove(storage, await forked(storage, again, "gone"));
    assert.equal(await remove(storage, again), "durable");
    const dir = await crash(engine);
    const { lines, summary } = await repair(dir);
    assert.deepEqual(summary, { done: 1, toDo: 0, left: 0 }, lines.join("\n"));
    assert.deepEqual(await findings(dir), []);
    assert.deepEqual((await repair(dir)).lines, []);
    const repaired = await openFor(t, { dir });
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
      const engine = await openFor(t, { dir });
      for (const [known, text] of Object.entries(texts)) assert.equal(await textOf(engine, known), `${text}!`, known);
    });
  }
});
