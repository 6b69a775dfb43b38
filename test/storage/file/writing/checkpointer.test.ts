import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { Checkpointer, type SealedFile } from "../../../../src/storage/file/writing/checkpointer.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../../../src/storage/file/journal/journal.js";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { bytesOf, keptLog, type LogLine } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { journalBytes } from "../../../helpers/journal-bytes.js";
import { fillingOf, type JournalFilling } from "../../../helpers/journal-filling.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError, errorOf } from "../../../helpers/watched-files.js";

/** A checkpointer, and what it did to sealed files, in order. */
async function checkpointer(
  rooms: FileRooms,
): Promise<{
  checkpointer: Checkpointer;
  journal: Journal;
  seal: (sequence: number, streams: readonly FileStream[]) => SealedFile;
  faults: readonly Error[];
  log: readonly LogLine[];
  end: () => Promise<void>;
}> {
  const journal = rooms.journal({ firstSequence: 100, olderFiles: 3 });
  await journal.open();
  const { log, lines } = keptLog();
  const made = new Checkpointer({ ...rooms.parts, log }, journal, { checkpoint: () => Promise.resolve() });
  const seal = (sequence: number, streams: readonly FileStream[]): SealedFile => {
    const path = rooms.layout.journalFile(sequence);
    writeFileSync(path, journalBytes(sequence, [streams.map((stream) => ({ stream, payload: "x" }))]));
    return { sequence, path, streams: new Set(streams), close: async () => void rooms.told.push(`close ${sequence}`) };
  };
  return { checkpointer: made, journal, seal, faults: rooms.faults, log: lines, end: () => journal.close() };
}

describe("a checkpoint", () => {
  test("makes every stream of the file permanent, and then frees the file", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const streams = Array.from({ length: 10 }, (_, index) => rooms.stream(`s${index}`));
    for (const [index, stream] of streams.entries()) rooms.advance(stream, bytesOf(100, index));
    const file = seal(1, streams);
    await made.add(file);
    assert.ok(streams.every(({ isPersisted, disk }) => isPersisted && disk.hasSidecar));
    assert.ok(!existsSync(file.path));
    const operations = rooms.files.operations.map(({ kind, path }) => `${kind} ${path}`);
    const freed = operations.findIndex((line) => line === `rename ${file.path}` || line === `unlink ${file.path}`);
    const lastShard = operations.findLastIndex((line) => line.startsWith("syncDirectory") && line.includes("/streams/"));
    assert.ok(freed > lastShard, "the entries of the streams' directories are permanent before the journal forgets");
    assert.equal(operations.slice(freed).includes(`syncDirectory ${rooms.layout.journal}`), true);
    assert.deepEqual(faults, []);
    await end();
  });

  test("runs one file after another, in order, and a few streams at a time", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, end } = await checkpointer(rooms);
    let atOnce = 0;
    let most = 0;
    const gates: Barrier[] = [];
    rooms.files.gate = ({ kind, path }) => {
      if (kind !== "write" || !path.endsWith(".seg")) return undefined;
      most = Math.max(most, (atOnce += 1));
      const gate = new Barrier();
      gates.push(gate);
      return gate.opened.then(() => void (atOnce -= 1));
    };
    const files = [1, 2].map((sequence) => {
      const streams = Array.from({ length: 8 }, (_, index) => rooms.stream(`${sequence}-${index}`));
      for (const stream of streams) rooms.advance(stream, bytesOf(10));
      return seal(sequence, streams);
    });
    const done = Promise.all(files.map((file) => made.add(file)));
    for (let opened = 0; opened < 16; opened += 1) {
      while (gates.length <= opened) await rooms.files.idle();
      gates[opened]?.open();
    }
    await done;
    assert.ok(most >= 2 && most <= 4, `${most} at once`);
    assert.deepEqual(rooms.told, ["close 1", "close 2"]);
    await end();
  });

  /** A checkpoint of so many streams, each of which waits for its gate in turn, and a journal that is filled meanwhile. */
  async function gated(
    count: number,
  ): Promise<{ gates: readonly Barrier[]; filling: JournalFilling; done: Promise<void>; end(): Promise<void> }> {
    const rooms = fileRooms();
    const { checkpointer: made, journal, seal, end } = await checkpointer(rooms);
    const streams = Array.from({ length: count }, (_, index) => rooms.stream(`s${index}`));
    for (const stream of streams) rooms.advance(stream, bytesOf(10));
    const gates: Barrier[] = [];
    rooms.files.gate = ({ kind, path }) => {
      if (kind !== "rename" || !path.endsWith("meta.json.new")) return undefined;
      gates.push(new Barrier());
      return gates.at(-1)?.opened;
    };
    const done = made.add(seal(1, streams));
    return { gates, filling: await fillingOf(rooms, journal, rooms.stream("waiting")), done, end };
  }

  test("lets the journal go on as far as it has come itself", async () => {
    const { gates, filling, done, end } = await gated(32);
    assert.equal(await filling.untilHeld(), 1, "what began before it knew how far it would come");
    const settled: number[] = [];
    for (let ended = 0; ended < 31; ended += 1) {
      gates[ended]?.open();
      settled.push(await filling.untilHeld());
    }
    gates[31]?.open();
    await done;
    assert.equal(await filling.waiting(), 0);
    // What is under way counts, so the last streams add nothing.
    const early = settled.slice(0, 12);
    assert.ok(
      early.every((count) => count > 0 && count < 5),
      `${settled.join()}: some at each step`,
    );
    await end();
  });

  test("of a few streams, all of which it has begun, leaves the journal all the room that there is", async () => {
    const { gates, filling, done, end } = await gated(1);
    assert.ok((await filling.untilHeld()) > 10);
    gates[0]?.open();
    await done;
    assert.equal(await filling.waiting(), 0);
    await end();
  });

  test("holds nobody up while it waits for its next try", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, journal, seal, end } = await checkpointer(rooms);
    const streams = [rooms.stream("a"), rooms.stream("b")];
    for (const stream of streams) rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith("meta.json.new") ? diskError("EMFILE") : undefined);
    const done = made.add(seal(1, streams));
    await rooms.files.idle();
    for (const label of ["first", "second", "third"]) {
      journal.enqueue(rooms.entry(rooms.stream("s"), label));
      await rooms.files.idle();
    }
    assert.equal(rooms.told.filter((line) => line.endsWith("durable")).length, 3);
    rooms.files.gate = null;
    rooms.clock.advance(1000);
    await done;
    await end();
  });

  test("waits for a deleted stream's way out of its place", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    stream.deleted = true;
    const move = new Barrier();
    rooms.files.gate = ({ kind, path }) => (kind === "rename" && path === stream.directory ? move.opened : undefined);
    rooms.trash.take(stream);
    const file = seal(1, [stream]);
    const done = made.add(file);
    await rooms.files.idle();
    assert.ok(existsSync(file.path));
    move.open();
    await done;
    assert.ok(!existsSync(file.path));
    assert.ok(!existsSync(stream.directory));
    await end();
  });

  test("keeps the file of a damaged stream, and makes the others permanent", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const [bad, good] = [rooms.stream("bad"), rooms.stream("good")];
    for (const stream of [bad, good]) rooms.advance(stream, bytesOf(10));
    bad.damage = new DamagedStreamError("bad", "meta.json", "something");
    const file = seal(1, [bad, good]);
    await made.add(file);
    assert.ok(!existsSync(file.path));
    const kept = readFileSync(rooms.layout.keptJournalFile(1), "latin1");
    assert.ok(kept.includes('"name":"bad"') && !kept.includes('"name":"good"'), "what the bad one lacks, and nothing else");
    assert.ok(bad.disk.hasNotice);
    assert.ok(existsSync(sidecarPath(good.directory)));
    assert.deepEqual(faults, []);
    await end();
  });

  test("goes on where a damaged stream's directory can't be told, and says so once", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, log, end } = await checkpointer(rooms);
    const [bad, good] = [rooms.stream("bad"), rooms.stream("good")];
    for (const stream of [bad, good]) rooms.advance(stream, bytesOf(10));
    mkdirSync(`${sidecarPath(bad.directory)}.new`, { recursive: true });
    for (const sequence of [1, 2]) await made.add(seal(sequence, [bad, good]));
    assert.deepEqual(readdirSync(rooms.layout.journal).filter((name) => name.endsWith(".kept")).length, 2);
    assert.equal(bad.disk.hasNotice, false);
    assert.ok(good.isPersisted);
    assert.deepEqual(faults, []);
    assert.equal(log.filter(({ message }) => message === "a stream's directory can't be told that it is damaged").length, 1);
    await end();
  });

  test("with more directories than that can't be told is a fault", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const streams = Array.from({ length: 10_001 }, (_, index) => rooms.stream(`s${index}`));
    for (const stream of streams) stream.damage = new DamagedStreamError(stream.name, "meta.json", "something");
    rooms.files.gate = ({ kind, path }) => (kind === "makeDirectory" && path.includes("streams") ? diskError("EACCES") : undefined);
    await made.add(seal(1, streams));
    assert.match(faults.map(String).join(), /more than 10000 streams' directories can't be written/);
    await end();
  });

  test("that finds the disk full is tried again", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, log, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    let tries = 0;
    // Each try may come further, and fail at another file.
    rooms.files.gate = ({ kind }) =>
      kind === "write" ? Object.assign(new Error(`no space for file ${(tries += 1)}`), errorOf("ENOSPC")) : undefined;
    const file = seal(1, [stream]);
    const done = made.add(file);
    await rooms.files.idle();
    rooms.clock.advance(1000);
    await rooms.files.idle();
    assert.ok(existsSync(file.path));
    rooms.files.gate = null;
    rooms.clock.advance(1000);
    await done;
    assert.ok(!existsSync(file.path));
    assert.equal(stream.isPersisted, true);
    assert.deepEqual(faults, []);
    assert.equal(log.filter(({ message }) => message === "the journal can't be freed now").length, 1);
    await end();
  });

  test("that finds the disk full at the end is left to the next start", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
    const file = seal(1, [stream]);
    void made.add(file);
    rooms.state.end();
    await made.idle();
    assert.ok(existsSync(file.path));
    assert.deepEqual(faults, []);
    rooms.files.gate = null;
    await end();
  });

  for (const { name, skewMs } of SKEWS) {
    for (const [code, retryMs] of [
      ["EMFILE", 100],
      ["ENOSPC", 1000],
    ] as const) {
      test(`that failed with ${code} is tried again whenever the timer fires, ${name}`, async () => {
        const rooms = fileRooms(new SkewedClock(skewMs));
        const { checkpointer: made, seal, end } = await checkpointer(rooms);
        const stream = rooms.stream();
        rooms.advance(stream, bytesOf(10));
        rooms.files.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
        const file = seal(1, [stream]);
        const done = made.add(file);
        await rooms.files.idle();
        rooms.files.gate = null;
        rooms.clock.advance(Math.max(0, retryMs + skewMs));
        await done;
        assert.ok(!existsSync(file.path));
        await end();
      });
    }
  }

  test("that waits for its next try is tried at once when all ends", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
    const file = seal(1, [stream]);
    void made.add(file);
    await rooms.files.idle();
    rooms.files.gate = null;
    rooms.state.end();
    await made.idle();
    assert.ok(!existsSync(file.path));
    await end();
  });

  test("that has freed its file and can't make that permanent yet goes on from there", async () => {
    for (const damage of [null, new DamagedStreamError("s", "f", "something")]) {
      const rooms = fileRooms();
      const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
      const stream = rooms.stream();
      if (damage === null) rooms.advance(stream, bytesOf(10));
      stream.damage = damage;
      const file = seal(1, [stream]);
      rooms.files.gate = ({ kind, path }) =>
        kind === "syncDirectory" && path.endsWith("journal") && !existsSync(file.path) ? diskError("EMFILE") : undefined;
      const done = made.add(file);
      await rooms.files.idle();
      assert.ok(!existsSync(file.path));
      rooms.files.gate = null;
      rooms.clock.advance(1000);
      await done;
      assert.deepEqual(faults, []);
      assert.ok(rooms.files.count("syncDirectory", /journal$/) > 0);
      await end();
    }
  });

  test("that fails is a fault, and the file is kept", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind, path }) => (kind === "sync" && path.endsWith(".seg") ? diskError("EIO") : undefined);
    const file = seal(1, [stream]);
    await made.add(file);
    assert.ok(existsSync(file.path));
    assert.equal(faults.length, 1);
    assert.ok(rooms.told.includes("close 1"));
    await end();
  });

  test("that fails at a file that can't be closed either tells the first fault only", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, faults, end } = await checkpointer(rooms);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind, path }) => (kind === "sync" && path.endsWith(".seg") ? diskError("EIO") : undefined);
    await made.add({ ...seal(1, [stream]), close: () => Promise.reject(diskError("EBADF")) });
    assert.match(faults.map(String).join(), /^Error: EIO[^,]*$/);
    await end();
  });

  test("that is stopped leaves the file", async () => {
    const rooms = fileRooms();
    const { checkpointer: made, seal, end } = await checkpointer(rooms);
    const streams = [rooms.stream("a"), rooms.stream("b")];
    for (const stream of streams) rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind }) => (kind === "write" ? (rooms.state.stop(), undefined) : undefined);
    const files = [seal(1, streams), seal(2, streams)];
    await Promise.all(files.map((file) => made.add(file)));
    assert.ok(files.every(({ path }) => existsSync(path)));
    assert.ok(rooms.told.includes("close 1") && rooms.told.includes("close 2"), rooms.told.join());
    await end();
  });
});
