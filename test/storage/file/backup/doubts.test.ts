import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Doubts, EVERYTHING } from "../../../../src/storage/file/backup/doubts.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { backedUp, filesWith, makeBackup, without } from "../../../helpers/backup.js";
import { append, bytesOf, created, loaded, openEngine, openFor, recordOf } from "../../../helpers/engine.js";
import { findings } from "../../../helpers/repaired-directory.js";
import { flipBit } from "../../../helpers/spoilt-files.js";
import { tempDir } from "../../../helpers/temp-dir.js";

describe("doubts", () => {
  test("are kept until a pass has looked at every stream", async () => {
    const saved: (readonly string[])[] = [];
    const doubts: Doubts = new Doubts(["a"], () => Promise.resolve(void saved.push(doubts.names)));
    doubts.beginPass();
    await doubts.add("b");
    assert.deepEqual([doubts.has("a"), doubts.has("b")], [true, false]);
    // The pass ended early.
    doubts.beginPass();
    assert.deepEqual([doubts.has("a"), doubts.has("b")], [true, true]);
    await doubts.add("b");
    assert.deepEqual(saved, [["a", "b"]]);
    doubts.endPass();
    assert.deepEqual(doubts.names, ["b"]);
  });

  test("name a stream once, however often it is doubted", async () => {
    const doubts = new Doubts([], () => Promise.resolve());
    doubts.beginPass();
    for (let index = 0; index < 2000; index += 1) await doubts.add(String(index % 1000));
    assert.equal(doubts.names.length, 1000);
  });

  test("are of everything where there are too many to name", async () => {
    let saves = 0;
    const doubts = new Doubts([], () => Promise.resolve(void (saves += 1)));
    doubts.beginPass();
    for (let index = 0; index < 5000; index += 1) await doubts.add(String(index));
    assert.deepEqual(doubts.names, [EVERYTHING]);
    assert.equal(saves, 1001);
    doubts.beginPass();
    assert.ok(doubts.has("another"));
    await doubts.add("another");
    assert.equal(saves, 1001);
    doubts.endPass();
    assert.deepEqual(doubts.names, ["another"]);
  });

  test("are added one by one, and fail where they can't be kept", async () => {
    const doubts = new Doubts([], () => Promise.reject(new Error("no room")));
    await Promise.all(["a", "a", "b"].map((name) => assert.rejects(doubts.add(name), /no room/)));
  });
});

/** Flips a bit of the segment of `s` that was made since the backup. */
function spoil(layout: Layout): void {
  flipBit(segmentPath(layout.streamDirectory("s"), 10_000), 20);
}

const DAMAGE = /^s: .*0000000000010000.seg: it does not match its checksum$/;

async function assertTold(made: Promise<{ readonly lines: readonly string[] }>): Promise<void> {
  const { lines } = await made;
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0] ?? "", DAMAGE);
}

async function assertSound(dir: string, dest: string): Promise<void> {
  assert.deepEqual((await makeBackup(dir, dest)).lines, []);
  assert.deepEqual(await findings(dest), []);
  assert.ok(!readFileSync(new Layout(dest).backup, "utf8").includes("doubted"));
}

describe("a backup of a damaged stream", () => {
  test("tells each time, until it is sound again", async () => {
    const { dir, layout } = await backedUp();
    const dest = join(tempDir(), "backup");
    spoil(layout);
    for (let time = 1; time <= 3; time += 1) await assertTold(makeBackup(dir, dest));
    spoil(layout);
    await assertSound(dir, dest);
    assert.equal((await makeBackup(dir, dest)).tally.changedStreams, 0);
  });

  test("tells also where the server kept the journal for too short a time, so that it looked again", async (t) => {
    const { dir, layout } = await backedUp();
    const engine = await openFor(t, { dir });
    const other = await loaded(engine.storage, "other");
    spoil(layout);
    const dest = join(tempDir(), "backup");
    const sidecar = sidecarPath(new Layout(dest).streamDirectory("s"));
    const begun: string[] = [];
    let isWritten = false;
    const files = filesWith(async (call, path) => {
      if (call === "connect") begun.push(path);
      // By then all streams are copied.
      const isCopied = call === "list" && path === layout.journal && existsSync(sidecar);
      if (isWritten || !isCopied) return;
      isWritten = true;
      for (let index = 0; index < 400; index += 1) await append(engine.storage, other, bytesOf(4000, index));
    });
    await assertTold(makeBackup(dir, dest, { files }));
    assert.equal(begun.length, 2);
  });

  test("tells also where the one before was told to stop once it had the sidecar", async () => {
    const { dir, dest, layout, copy } = await backedUp();
    spoil(layout);
    const stop = new AbortController();
    const files = filesWith((call, path) => {
      if (call === "rename" && path.startsWith(sidecarPath(copy.streamDirectory("s")))) stop.abort(new DirectoryError("enough"));
    });
    await assert.rejects(makeBackup(dir, dest, { files, stop: stop.signal }), { message: "enough" });
    assert.deepEqual(readFileSync(sidecarPath(copy.streamDirectory("s"))), readFileSync(sidecarPath(layout.streamDirectory("s"))));
    await assertTold(makeBackup(dir, dest));
    spoil(layout);
    await assertSound(dir, dest);
  });

  test("tells each time also of an append that only the journal knew", async () => {
    const engine = await openEngine();
    await append(engine.storage, await created(engine.storage, "s", bytesOf(9000)), recordOf("", { closes: true }));
    flipBit(segmentPath(new Layout(engine.dir).streamDirectory("s"), 0), 100);
    const dest = join(tempDir(), "backup");
    assert.match((await makeBackup(engine.dir, dest)).lines.join(), /^s: .*: an append in it does not match its checksum$/);
    await engine.storage.close();
    for (let time = 1; time <= 2; time += 1)
      assert.match((await makeBackup(engine.dir, dest)).lines.join(), /^s: .*: it does not match its checksum$/);
  });

  test("puts right what it has once the file can be read", async () => {
    const { dir, dest, layout, copy } = await backedUp();
    const [from, to] = [layout, copy].map((each) => segmentPath(each.streamDirectory("s"), 10_000));
    assert.ok(from !== undefined && to !== undefined);
    writeFileSync(to, bytesOf(5000, 99));
    assert.equal((await makeBackup(dir, dest, { files: without(from) })).troubles, 1);
    await assertSound(dir, dest);
  });

  test("looks again also where its mark can't be understood", async () => {
    const { dir, dest, layout, copy } = await backedUp();
    spoil(layout);
    await makeBackup(dir, dest);
    const bytes = readFileSync(copy.backup, "utf8");
    for (const spoilt of [bytes.slice(0, -3), bytes.replace(/"doubted":.*]/, '"doubted":7')]) {
      assert.notEqual(spoilt, bytes);
      writeFileSync(copy.backup, spoilt);
      await assertTold(makeBackup(dir, dest));
    }
  });
});
