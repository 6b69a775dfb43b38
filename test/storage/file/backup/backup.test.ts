import assert from "node:assert/strict";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readMarker } from "../../../../src/storage/file/directory/marker.js";
import { encodeHolder } from "../../../../src/storage/file/directory/lock-holder.js";
import { thisProcess } from "../../../../src/ops/lock/process-identity.js";
import { procOf } from "../../../../src/storage/file/directory/journal-users.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { claimSocket, Layout, pinnedPath, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { closedDirectory } from "../../../helpers/closed-directory.js";
import { filesWith, makeBackup, restored } from "../../../helpers/backup.js";
import {
  append,
  bytesOf,
  copyOf,
  crash,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  recordOf,
  remove,
  reopen,
  type Engine,
} from "../../../helpers/engine.js";
import { findings, repair, textOf } from "../../../helpers/repaired-directory.js";
import { diskError } from "../../../helpers/watched-files.js";
import { flipBit } from "../../../helpers/spoilt-files.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { trimBefore } from "../../../helpers/trim.js";

function newDest(): string {
  return join(tempDir(), "backup");
}

/** Checks what streams of a backup say. */
async function assertSays(dest: string, streams: Readonly<Record<string, string | null>>): Promise<void> {
  const copy = await restored(dest);
  for (const [name, text] of Object.entries(streams)) {
    if (text === null) assert.equal(await copy.storage.load(name), null);
    else assert.equal(await textOf(copy, name), text);
  }
  await copy.storage.close();
}

/** An engine with `s` of three segments of 5,000 bytes, the last of them open, all in files of its own. */
async function withSegments(): Promise<Engine> {
  const engine = await openEngine();
  const stream = await created(engine.storage, "s", bytesOf(5000, 1));
  for (const seed of [2, 3]) await append(engine.storage, stream, bytesOf(5000, seed));
  return reopen(engine);
}

const TEXT = [1, 2, 3].map((seed) => bytesOf(5000, seed).toString()).join("");

describe("a backup of a directory that a server has open", () => {
  test("has streams that only the journal has, large payloads, forks, and no deleted ones", async (t) => {
    const engine = await openFor(t);
    const small = await created(engine.storage, "small", "hello");
    await created(engine.storage, "large", bytesOf(9000));
    await forked(engine.storage, small, "fork", 3, "p!");
    await remove(engine.storage, await created(engine.storage, "gone", bytesOf(9000)));
    const dest = newDest();
    const { tally } = await makeBackup(engine.dir, dest);
    assert.deepEqual([tally.changedStreams, tally.copiedBytes], [1, 9000]);
    await assertSays(dest, { small: "hello", large: bytesOf(9000).toString(), fork: "help!", gone: null });
  });

  test("has what is appended, made, deleted and dropped while it is made", async (t) => {
    const engine = await withSegments();
    t.after(() => engine.storage.close());
    const { storage } = engine;
    const doomed = await created(storage, "doomed", bytesOf(9000));
    let hasChanged = false;
    const files = filesWith(async (call, path) => {
      if (hasChanged || call !== "open" || !path.endsWith(".seg")) return;
      hasChanged = true;
      const stream = await loaded(storage, "s");
      await append(storage, stream, bytesOf(6000, 4));
      await append(storage, stream, "tail");
      trimBefore(storage, stream, 5000);
      await remove(storage, doomed);
      await created(storage, "doomed", bytesOf(7000, 9));
      await created(storage, "new", "new");
      await engine.files.idle();
    });
    const dest = newDest();
    await makeBackup(engine.dir, dest, { files });
    assert.equal(hasChanged, true);
    const text = TEXT.slice(5000) + bytesOf(6000, 4).toString() + "tail";
    await assertSays(dest, { s: text, doomed: bytesOf(7000, 9).toString(), new: "new" });
  });

  test("has nothing of a stream that is made after its last batch where a deleted one was", async (t) => {
    const engine = await withSegments();
    t.after(() => engine.storage.close());
    const { storage, dir, files: server } = engine;
    const doomed = await loaded(storage, "s");
    const done = { deleted: false, made: false };
    const layout = new Layout(dir);
    const files = filesWith(async (_, path) => {
      if (path === sidecarPath(layout.streamDirectory("s")) && !done.deleted) {
        done.deleted = true;
        await remove(storage, doomed);
        await server.idle();
      }
      // By then it is known which batch is the last.
      if (path === layout.journal && done.deleted && !done.made) {
        done.made = true;
        await created(storage, "s", bytesOf(8000, 7));
      }
    });
    const dest = newDest();
    const { lines } = await makeBackup(dir, dest, { files });
    assert.deepEqual([done, lines], [{ deleted: true, made: true }, []]);
    await assertSays(dest, { s: null });
  });

  test("is begun again where more is written meanwhile than the server keeps, and ends", async (t) => {
    const engine = await withSegments();
    t.after(() => engine.storage.close());
    const stream = await loaded(engine.storage, "s");
    const begun: string[] = [];
    let isWritten = false;
    const files = filesWith(async (call, path) => {
      if (call === "connect") begun.push(path);
      if (call !== "open" || !path.endsWith("0000000000000000.seg") || isWritten) return;
      isWritten = true;
      for (let index = 0; index < 400; index += 1) await append(engine.storage, stream, bytesOf(4000, index));
    });
    const dest = newDest();
    // What can be linked is not opened.
    files.link = () => Promise.reject(diskError("EXDEV"));
    await makeBackup(engine.dir, dest, { files });
    assert.equal(begun.length, 2);
    const text = TEXT + Array.from({ length: 400 }, (_, index) => bytesOf(4000, index).toString()).join("");
    await assertSays(dest, { s: text });
    assert.deepEqual(
      readdirSync(join(engine.dir, "journal")).filter((name) => name.endsWith(".pinned")),
      [],
    );
  });

  test("is given up where that happens again and again", async (t) => {
    const dir = await closedDirectory();
    const files = systemFiles(false);
    const name = claimSocket(new Layout(dir).lock, "0123456789abcdef");
    const pinned = JSON.stringify({ pinned: (await readMarker(files, new Layout(dir)))?.toString("hex") });
    let begun = 0;
    const server = createServer((connection) => {
      begun += 1;
      connection.write('{"streamdir":"0.1.0","protocol":1,"pid":1}\n');
      connection.once("data", () => {
        connection.write(`${pinned}\n`);
        connection.once("data", () => void connection.end('{"error":"journal-room"}\n'));
      });
    });
    await new Promise<void>((resolve) => void server.listen(join(dir, name), resolve));
    t.after(() => void server.close());
    writeFileSync(new Layout(dir).lock, encodeHolder({ ...(await thisProcess(procOf(files))), socket: name }));
    const dest = newDest();
    await assert.rejects(makeBackup(dir, dest), {
      message: `${dir}: more is written to it than can be copied meanwhile: run the backup again when there is less`,
    });
    assert.equal(begun, 8);
    await assert.rejects(findings(dest), /is a backup that is not complete/);
  });

  test("ends with the server's", async () => {
    const engine = await withSegments();
    const files = filesWith(async (call, path) => {
      if (call === "link" && path.endsWith(".seg")) await engine.storage.close();
    });
    const dest = newDest();
    await assert.rejects(makeBackup(engine.dir, dest, { files }), /its server ended meanwhile: run the backup again$/);
    await assert.rejects(findings(dest), { message: `${dest} is a backup that is not complete: run streamdir backup again` });
    await assert.rejects(openEngine({ dir: dest }), { message: `${dest} is a backup that is not complete: run streamdir backup again` });
    await makeBackup(engine.dir, dest);
    await assertSays(dest, { s: TEXT });
  });

  test("is the only one of its kind at a time", async (t) => {
    const engine = await openFor(t);
    await created(engine.storage, "s", "hello");
    let refused = 0;
    // What is listed before is the backup's own place: only once the streams are is the first one sure to be under way.
    const files = filesWith(async (call, path) => {
      if (call !== "list" || path !== join(engine.dir, "streams")) return;
      await assert.rejects(makeBackup(engine.dir, newDest()), /another backup of it is under way$/);
      refused += 1;
    });
    await makeBackup(engine.dir, newDest(), { files });
    assert.ok(refused > 0);
  });
});

describe("a backup of a directory that nobody has open", () => {
  test("has all of it, also after a crash", async () => {
    const engine = await withSegments();
    await created(engine.storage, "t", "in the journal");
    const crashed = await crash(engine);
    const dest = newDest();
    await makeBackup(crashed, dest);
    await assertSays(dest, { s: TEXT, t: "in the journal" });
  });

  test("is refused where it has no room, and goes on where it was once there is some", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    const dest = newDest();
    const files = filesWith((call, path) => {
      if (call === "open" && path.startsWith(dest) && path.endsWith(".seg")) throw diskError("ENOSPC");
    });
    await assert.rejects(makeBackup(engine.dir, dest, { files }), { message: `the directory ${dest} can't be used: the disk is full` });
    const { tally } = await makeBackup(engine.dir, dest);
    assert.deepEqual([tally.copiedBytes, tally.linkedBytes, tally.keptBytes], [5000, 0, 10_000]);
    await assertSays(dest, { s: TEXT });
  });

  test("is refused where it is none", async () => {
    const dir = tempDir();
    const dest = newDest();
    await assert.rejects(makeBackup(dir, dest), /is not a data directory of streamdir: .*streamdir.json is missing$/);
    assert.equal(existsSync(dest), false);
  });

  test("keeps it from servers meanwhile", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    let start: Promise<unknown> | null = null;
    const files = filesWith((call, path) => {
      if (call === "link" && path.startsWith(engine.dir)) start ??= assert.rejects(openEngine({ dir: engine.dir }), /is in use by process/);
    });
    await makeBackup(engine.dir, newDest(), { files });
    assert.ok(start !== null);
    await start;
  });
});

describe("a backup to the same place", () => {
  test("copies only what is new, and links what will never change", async () => {
    let engine = await withSegments();
    const dest = newDest();
    const first = await makeBackup(engine.dir, dest);
    assert.deepEqual([first.tally.copiedBytes, first.tally.linkedBytes, first.tally.keptBytes], [5000, 10_000, 0]);
    const [from, to] = [new Layout(engine.dir).streamDirectory("s"), new Layout(dest).streamDirectory("s")];
    const inodes = [0, 5000, 10_000].map((start) => statSync(segmentPath(from, start)).ino === statSync(segmentPath(to, start)).ino);
    assert.deepEqual(inodes, [true, true, false]);

    await append(engine.storage, await loaded(engine.storage, "s"), bytesOf(100, 4));
    engine = await reopen(engine);
    const second = await makeBackup(engine.dir, dest);
    const { copiedBytes, linkedBytes, keptBytes, changedStreams } = second.tally;
    // The hundred bytes begin a segment: the one before is whole, and there already.
    assert.deepEqual([copiedBytes, linkedBytes, keptBytes, changedStreams], [100, 0, 15_000, 1]);
    await append(engine.storage, await loaded(engine.storage, "s"), bytesOf(77, 5));
    engine = await reopen(engine);
    assert.equal((await makeBackup(engine.dir, dest)).tally.copiedBytes, 77);
    const last = await makeBackup(engine.dir, dest);
    assert.deepEqual([last.tally.copiedBytes, last.tally.changedStreams, last.tally.keptBytes], [0, 0, 15_177]);
    await assertSays(dest, { s: TEXT + bytesOf(100, 4).toString() + bytesOf(77, 5).toString() });
    await engine.storage.close();
  });

  test("copies where the file system has no links, and then only what is new", async () => {
    let engine = await withSegments();
    const files = filesWith((call) => {
      if (call === "link") throw diskError("EXDEV");
    });
    const dest = newDest();
    assert.equal((await makeBackup(engine.dir, dest, { files })).tally.copiedBytes, 15_000);
    await append(engine.storage, await loaded(engine.storage, "s"), bytesOf(100, 4));
    engine = await reopen(engine);
    assert.equal((await makeBackup(engine.dir, dest, { files })).tally.copiedBytes, 100);
    await assertSays(dest, { s: TEXT + bytesOf(100, 4).toString() });
    await engine.storage.close();
  });

  test("removes streams that are deleted, and has the one that took a name", async () => {
    let engine = await withSegments();
    await created(engine.storage, "t", bytesOf(9000));
    engine = await reopen(engine);
    const dest = newDest();
    await makeBackup(engine.dir, dest);
    await remove(engine.storage, await loaded(engine.storage, "s"));
    await remove(engine.storage, await loaded(engine.storage, "t"));
    await created(engine.storage, "t", bytesOf(8000, 7));
    engine = await reopen(engine);
    const { tally } = await makeBackup(engine.dir, dest);
    assert.equal(tally.removedStreams, 1);
    assert.equal(existsSync(new Layout(dest).streamDirectory("s")), false);
    await assertSays(dest, { s: null, t: bytesOf(8000, 7).toString() });
    await engine.storage.close();
  });

  test("never writes to a file with another name, as in a copy of links", async () => {
    let engine = await withSegments();
    const dest = newDest();
    await makeBackup(engine.dir, dest);
    const active = segmentPath(new Layout(dest).streamDirectory("s"), 10_000);
    const older = join(tempDir(), "older.seg");
    linkSync(active, older);
    await append(engine.storage, await loaded(engine.storage, "s"), recordOf(bytesOf(50, 4), { closes: true }));
    engine = await reopen(engine);
    const files = filesWith((call) => {
      if (call === "link") throw diskError("EXDEV");
    });
    await makeBackup(engine.dir, dest, { files });
    assert.equal(statSync(older).size, 5000);
    await assertSays(dest, { s: TEXT + bytesOf(50, 4).toString() });
    await engine.storage.close();
  });

  test("leaves out what a killed server had kept of the journal for another backup", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(3000, 0));
    const [older = ""] = readdirSync(new Layout(engine.dir).journal);
    const bytes = readFileSync(join(new Layout(engine.dir).journal, older));
    for (let seed = 1; seed <= 80; seed += 1) await append(engine.storage, stream, bytesOf(3000, seed));
    await engine.files.idle();
    const dir = await crash(engine);
    const path = join(new Layout(dir).journal, older);
    assert.ok(!existsSync(path), "the journal has gone on");
    writeFileSync(pinnedPath(path), bytes);
    const dest = newDest();
    await makeBackup(dir, dest);
    const copy = await restored(dest);
    assert.equal((await loaded(copy.storage, "s")).state.tail, 81 * 3000);
    await copy.storage.close();
  });

  test("puts right what is damaged in the backup where it copies", async () => {
    let engine = await withSegments();
    const dest = newDest();
    await makeBackup(engine.dir, dest);
    const active = segmentPath(new Layout(dest).streamDirectory("s"), 10_000);
    rmSync(active);
    writeFileSync(active, bytesOf(5000, 99));
    rmSync(sidecarPath(new Layout(dest).streamDirectory("s")));
    assert.equal((await makeBackup(engine.dir, dest)).tally.copiedBytes, 5000);
    engine = await reopen(engine);
    await assertSays(dest, { s: TEXT });
    await engine.storage.close();
  });
});

describe("a backup of what is damaged", () => {
  test("has it as it is, and tells", async () => {
    const engine = await withSegments();
    await created(engine.storage, "t", bytesOf(9000));
    await engine.storage.close();
    const layout = new Layout(engine.dir);
    flipBit(segmentPath(layout.streamDirectory("s"), 10_000), 20);
    rmSync(sidecarPath(layout.streamDirectory("t")));
    const dest = newDest();
    const { lines, troubles } = await makeBackup(engine.dir, dest);
    const shown = lines.map((line) => line.replace(/streams\/..\//, ""));
    assert.deepEqual(shown, [": t/meta.json: it is missing", "s: s/0000000000010000.seg: it does not match its checksum"]);
    assert.equal(troubles, 2);
    const found = await findings(dest);
    assert.equal(found.length, 2, found.join("\n"));
  });

  test("leaves out what is no stream's", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    const directory = new Layout(engine.dir).streamDirectory("s");
    flipBit(sidecarPath(directory), 30);
    mkdirSync(join(directory, "letters"));
    writeFileSync(join(directory, "..", "letter"), "dear");
    const dest = newDest();
    assert.equal((await makeBackup(engine.dir, dest)).troubles, 1);
    const names = readdirSync(new Layout(dest).streamDirectory("s"));
    assert.deepEqual(names.includes("meta.json") && !names.includes("letters"), true);
  });

  test("has streams that were refused, and what a repair set aside", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    const sidecar = sidecarPath(new Layout(engine.dir).streamDirectory("s"));
    flipBit(sidecar, 30);
    rmSync(segmentPath(new Layout(engine.dir).streamDirectory("s"), 0));
    await repair(engine.dir);
    const dest = newDest();
    const { lines } = await makeBackup(engine.dir, dest);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.deepEqual(readdirSync(join(dest, "damaged")), readdirSync(join(engine.dir, "damaged")));
    const copied = sidecarPath(new Layout(dest).streamDirectory("s"));
    assert.deepEqual(readFileSync(copied), readFileSync(sidecar));
    assert.equal((await makeBackup(engine.dir, dest)).lines.length, 1);
  });

  test("tells of a large append that only the journal knows, and that is not what was written", async () => {
    const engine = await openEngine();
    await created(engine.storage, "s", bytesOf(9000));
    const crashed = await crash(engine);
    flipBit(segmentPath(new Layout(crashed).streamDirectory("s"), 0), 100);
    const { lines } = await makeBackup(crashed, newDest());
    assert.deepEqual(
      lines.map((line) => line.replace(/streams\/..\//, "")),
      ["s: s/0000000000000000.seg: an append in it does not match its checksum"],
    );
  });

  test("is refused where it has lost the place of streams that the backup has, and the backup stays whole", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    const dest = newDest();
    await makeBackup(engine.dir, dest);
    const shard = join(new Layout(engine.dir).streamDirectory("s"), "..");
    rmSync(shard, { recursive: true });
    await assert.rejects(makeBackup(engine.dir, dest), { message: `${shard} is missing, and the backup ${dest} has streams of it` });
    await assertSays(dest, { s: TEXT });
  });

  test("minds nothing else that lies in the backup's streams/", async () => {
    const engine = await withSegments();
    await engine.storage.close();
    const dest = newDest();
    await makeBackup(engine.dir, dest);
    mkdirSync(join(dest, "streams", "@eaDir"));
    for (const name of [".DS_Store", join("@eaDir", "x")]) writeFileSync(join(dest, "streams", name), "");
    assert.deepEqual((await makeBackup(engine.dir, dest)).lines, []);
  });

  test("has a stream whole that was put back to an earlier state, and went on differently", async () => {
    const first = await openEngine();
    await append(first.storage, await created(first.storage, "s", "begun "), "then ");
    await first.storage.close();
    const dest = newDest();
    const earlier = copyOf(first.dir);
    const second = await openEngine({ dir: first.dir });
    await append(second.storage, await loaded(second.storage, "s"), "one way");
    await second.storage.close();
    await makeBackup(first.dir, dest);
    const third = await openEngine({ dir: earlier });
    await append(third.storage, await loaded(third.storage, "s"), "another way");
    await third.storage.close();
    const { lines } = await makeBackup(earlier, dest);
    assert.deepEqual(lines, []);
    await assertSays(dest, { s: "begun then another way" });
  });

  test("is refused where the journal is damaged", async () => {
    const engine = await withSegments();
    await created(engine.storage, "t", "x");
    await created(engine.storage, "u", "x");
    // What was before the start is checkpointed, so that there is one journal file.
    await engine.files.idle();
    const crashed = await crash(engine);
    const journal = readdirSync(join(crashed, "journal")).find((name) => name.endsWith(".journal")) ?? "";
    flipBit(join(crashed, "journal", journal), 520);
    await assert.rejects(makeBackup(crashed, newDest()), /journal file .* is damaged at byte 512/);
  });
});
