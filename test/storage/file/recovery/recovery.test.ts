import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { DamagedStreamError, type StoredStream } from "../../../../src/storage/storage.js";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { decodeFrame, SECTOR_BYTES } from "../../../../src/storage/file/format/record.js";
import {
  append,
  bytesOf,
  copyOf,
  crash,
  crashAndRecover,
  created,
  loaded,
  makeEngine,
  openEngine,
  readAll,
  recordOf,
  remove,
  reopen,
  settled,
  startCreate,
  type Engine,
} from "../../../helpers/engine.js";
import { crashedWithThreeFiles, journalFiles } from "../../../helpers/several-journal-files.js";
import { Barrier, diskError, WatchedFiles } from "../../../helpers/watched-files.js";

/** Where the frames of a journal file begin, and where the last one ends. */
function framesOf(path: string): { offsets: number[]; end: number } {
  const bytes = readFileSync(path);
  const offsets: number[] = [];
  let end = 0;
  for (let frame = decodeFrame(bytes, 0); frame !== null; frame = decodeFrame(bytes, end)) {
    offsets.push(end);
    end = frame.nextOffset;
  }
  return { offsets, end };
}

/** Turns one byte of a file around. */
function spoil(path: string, position: number): void {
  const bytes = readFileSync(path);
  bytes[position] = (bytes[position] ?? 0) ^ 0xff;
  writeFileSync(path, bytes);
}

async function assertBytes(engine: Engine, name: string, expected: Buffer): Promise<StoredStream> {
  const stream = await loaded(engine.storage, name);
  assert.equal(stream.state.tail, expected.length);
  for (const maxBytes of [1009, 100_000])
    assert.ok((await readAll(engine.storage, stream, 0, maxBytes)).equals(expected), `${name} reads as written`);
  return stream;
}

describe("recovery after kill -9", () => {
  test("everything that was acknowledged is there, and can be appended to", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "first,");
    const producer = { id: "p", epoch: 3, seq: 7 };
    await append(engine.storage, stream, recordOf("second", { producer, seq: "b", atMs: 123 }));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    const found = await assertBytes(again, "s", Buffer.from("first,second"));
    assert.deepEqual(found.state, stream.state);
    assert.deepEqual(found.config, stream.config);
    assert.equal(found.id, stream.id);
    assert.equal(await append(again.storage, found, ",third"), "durable");
    await assertBytes(again, "s", Buffer.from("first,second,third"));
    assert.ok(
      again.log.some(
        ({ level, message, fields }) => level === "info" && message === "recovered from the journal" && fields["streams"] === 1,
      ),
    );
  });

  test("a crash right after a recovery is recovered by the next, and the one after that", async (t) => {
    let engine = await openEngine();
    const stream = await created(engine.storage, "s");
    let expected = Buffer.alloc(0);
    for (let round = 0; round < 60; round += 1) {
      const part = bytesOf(round % 7 === 3 ? 5000 : 900, round);
      expected = Buffer.concat([expected, part]);
      assert.equal(await append(engine.storage, stream, part), "durable");
    }
    for (let time = 0; time < 4; time += 1) {
      engine = await crashAndRecover(engine);
      await assertBytes(engine, "s", expected);
      if (time % 2 === 0) await engine.files.idle();
    }
    t.after(() => engine.storage.close());
    const found = await loaded(engine.storage, "s");
    assert.equal(await append(engine.storage, found, "!"), "durable");
    await assertBytes(engine, "s", Buffer.concat([expected, Buffer.from("!")]));
  });

  test("several journal files that wait for their checkpoint are recovered, and so is a crash after that checkpoint", async (t) => {
    const engine = await openEngine();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
    const stream = await created(engine.storage, "s");
    const doomed = await created(engine.storage, "doomed", bytesOf(100));
    const parts: Buffer[] = [];
    for (let index = 0; journalFiles(engine.dir).length < 3; index += 1) {
      parts.push(bytesOf(1500, index));
      assert.equal(await append(engine.storage, stream, bytesOf(1500, index)), "durable");
    }
    await remove(engine.storage, doomed);
    const expected = Buffer.concat(parts);
    const again = await crashAndRecover(engine);
    await again.files.idle();
    await assertBytes(again, "s", expected);
    const third = await crashAndRecover(again);
    t.after(() => third.storage.close());
    await assertBytes(third, "s", expected);
    assert.equal(await third.storage.load("doomed"), null);
  });

  test("large payloads that went past the journal are recovered between small ones", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(5000, 99));
    const parts = [bytesOf(5000, 99), ...[100, 4096, 200, 9000, 4096, 50, 6000, 1].map((size, index) => bytesOf(size, index))];
    await Promise.all(parts.slice(1).map((part) => append(engine.storage, stream, part)));
    const expected = Buffer.concat(parts);
    await assertBytes(engine, "s", expected);
    const again = await crashAndRecover(engine);
    await assertBytes(again, "s", expected);
    const found = await loaded(again.storage, "s");
    assert.equal(await append(again.storage, found, "tail"), "durable");
    const third = await crashAndRecover(again);
    await assertBytes(third, "s", Buffer.concat([expected, Buffer.from("tail")]));
    const closed = await reopen(third);
    t.after(() => closed.storage.close());
    await assertBytes(closed, "s", Buffer.concat([expected, Buffer.from("tail")]));
  });

  test("a large payload whose record was never written leaves nothing behind", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    await engine.files.idle();
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? new Barrier().opened : undefined);
    void append(engine.storage, stream, bytesOf(5000));
    void startCreate(engine.storage, "unborn", bytesOf(6000));
    await engine.files.idle();
    const dir = await crash(engine);
    const layout = new Layout(dir);
    assert.ok(existsSync(sidecarPath(layout.streamDirectory("unborn"))), "the directory was claimed");
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    await assertBytes(again, "s", Buffer.from("kept"));
    assert.equal(await again.storage.load("unborn"), null);
    const found = await loaded(again.storage, "s");
    assert.equal(await append(again.storage, found, " and more"), "durable");
    await created(again.storage, "unborn", "born after all");
    await again.storage.persist(found);
    assert.equal(readFileSync(segmentPath(layout.streamDirectory("s"), 0), "latin1"), "kept and more");
    await assertBytes(again, "unborn", Buffer.from("born after all"));
  });

  test("a claimed directory belongs to its stream once the creation is durable", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "big", bytesOf(6000));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    await assertBytes(again, "big", bytesOf(6000));
  });

  test("deleted and made again, a name has the newest stream and nothing else", async (t) => {
    const sizes = [0, 10, 5000];
    const engine = await openEngine();
    const names: string[] = [];
    for (const first of sizes) {
      for (const second of sizes) {
        for (const third of sizes) {
          const name = `${first}-${second}-${third}`;
          names.push(name);
          const { stream: one } = startCreate(engine.storage, name, bytesOf(first, 1));
          assert.ok(one !== null);
          assert.equal(await remove(engine.storage, one), "durable");
          const { stream: two } = startCreate(engine.storage, name, bytesOf(second, 2));
          assert.ok(two !== null);
          void append(engine.storage, two, bytesOf(third, 3));
        }
      }
    }
    for (const name of names) assert.equal(await settled(engine.storage, await loaded(engine.storage, name)), "durable");
    const check = async (at: Engine): Promise<void> => {
      for (const name of names) {
        const [, second = 0, third = 0] = name.split("-").map(Number);
        await assertBytes(at, name, Buffer.concat([bytesOf(second, 2), bytesOf(third, 3)]));
      }
    };
    await check(engine);
    const again = await crashAndRecover(engine);
    await check(again);
    const third = await reopen(again);
    t.after(() => third.storage.close());
    await check(third);
  });

  test("a deletion that is durable is finished, also when its files are still in their place", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(5000));
    await engine.storage.persist(stream);
    await engine.files.idle();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("streams") ? new Barrier().opened : undefined);
    assert.equal(await remove(engine.storage, stream), "durable");
    const dir = await crash(engine);
    assert.ok(existsSync(sidecarPath(new Layout(dir).streamDirectory("s"))));
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    assert.equal(await again.storage.load("s"), null);
    await again.files.idle();
    assert.ok(!existsSync(new Layout(dir).streamDirectory("s")));
    assert.deepEqual(readdirSync(join(dir, "trash")), []);
  });

  test("a deletion that is durable is finished, also when the sidecar was damaged since", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(5000));
    await engine.storage.persist(stream);
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("streams") ? new Barrier().opened : undefined);
    assert.equal(await remove(engine.storage, stream), "durable");
    const dir = await crash(engine);
    spoil(sidecarPath(new Layout(dir).streamDirectory("s")), 60);
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    assert.equal(await again.storage.load("s"), null);
    await created(again.storage, "s", "new");
    await assertBytes(again, "s", Buffer.from("new"));
  });

  test("what a reader's touch noted survives", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    engine.storage.touch(stream, 999);
    await settled(engine.storage, stream);
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.equal((await loaded(again.storage, "s")).state.touchedAtMs, 999);
  });

  test("more than memory may hold is written to segments while the streams are opened", async (t) => {
    const engine = await openEngine({ journalBytes: 1024 * 1024, tailCacheBytes: 1024 * 1024 });
    const streams = await Promise.all([0, 1, 2, 3].map((index) => created(engine.storage, `s${index}`)));
    const parts = Array.from({ length: 20 }, (_, index) => bytesOf(2000, index));
    for (const part of parts) await Promise.all(streams.map((stream) => append(engine.storage, stream, part)));
    const again = await crashAndRecover(engine, { tailCacheBytes: 16 * 1024 });
    t.after(() => again.storage.close());
    // The checkpoint comes when all are open.
    again.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
    await loaded(again.storage, "s0");
    assert.ok(again.files.count("write", /\.seg$/) > 0);
    again.files.gate = null;
    for (let index = 0; index < 4; index += 1) await assertBytes(again, `s${index}`, Buffer.concat(parts));
  });
});

test("what is behind the last frame is made nothing: a frame that was never whole there may come back with a power loss", async (t) => {
  const engine = await openEngine();
  await created(engine.storage, "s", "here");
  const dir = await crash(engine);
  const [path] = journalFiles(dir);
  assert.ok(path !== undefined);
  const { end } = framesOf(path);
  const bytes = readFileSync(path);
  bytes.fill(0xff, end, end + 100);
  writeFileSync(path, bytes);
  const files = new WatchedFiles();
  files.gate = ({ kind, path }) => (kind === "rename" && path.includes("/journal/") ? new Barrier().opened : undefined);
  const again = await openEngine({ dir, files });
  assert.ok(
    readFileSync(path)
      .subarray(end, end + SECTOR_BYTES)
      .every((byte) => byte === 0),
  );
  const third = await crashAndRecover(again);
  t.after(() => third.storage.close());
  await assertBytes(third, "s", Buffer.from("here"));
});

test("a deletion of a stream that could not be read counts for what is there when it can be read again", async () => {
  const first = await openEngine();
  await created(first.storage, "s", bytesOf(5000));
  await created(first.storage, "kept", "here");
  const engine = await reopen(first);
  engine.files.gate = ({ kind, path }) => {
    if (kind === "rename" && path.endsWith("/s")) return new Barrier().opened;
    return kind === "read" && path.endsWith("/s/meta.json") ? diskError("EIO") : undefined;
  };
  await assert.rejects(engine.storage.load("s"), DamagedStreamError);
  assert.equal(await engine.storage.deleteDamaged("s"), "durable");
  const again = await openEngine({ dir: await crash(engine) });
  assert.equal(await again.storage.load("s"), null);
  assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "kept")), Buffer.from("here"));
  await again.storage.close();
});

describe("the end of the journal", () => {
  test("a torn last frame ends it quietly, wherever it was torn", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    for (const text of ["one", "two"]) await append(engine.storage, stream, text);
    await append(engine.storage, stream, bytesOf(2000));
    const dir = await crash(engine);
    const { offsets } = framesOf(journalFiles(dir)[0] ?? "");
    const last = offsets.at(-1) ?? 0;
    for (const damage of [0, 4, 8, 12, 41, 600, 2000]) {
      const copy = copyOf(dir);
      spoil(journalFiles(copy)[0] ?? "", last + damage);
      const again = await openEngine({ dir: copy });
      await assertBytes(again, "s", Buffer.from("onetwo"));
      assert.equal(await append(again.storage, await loaded(again.storage, "s"), "three"), "durable");
      await again.storage.close();
    }
  });

  test("a file cut off in the last frame ends it quietly", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "one");
    await append(engine.storage, stream, bytesOf(2000));
    const dir = await crash(engine);
    const path = journalFiles(dir)[0] ?? "";
    truncateSync(path, (framesOf(path).offsets.at(-1) ?? 0) + 1000);
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    await assertBytes(again, "s", Buffer.from("one"));
  });

  test("damage in the middle is an error that names the file and the byte, and the file is kept", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    for (const text of ["one", "two", "three"]) await append(engine.storage, stream, text);
    const dir = await crash(engine);
    const path = journalFiles(dir)[0] ?? "";
    const { offsets } = framesOf(path);
    const middle = offsets[2] ?? 0;
    spoil(path, middle + 50);
    const before = readFileSync(path);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
        assert.ok(error instanceof DirectoryError);
        assert.ok(error.message.includes(path), error.message);
        assert.match(error.message, new RegExp(`at byte ${middle}\\b`));
        return true;
      });
    }
    assert.ok(readFileSync(path).equals(before));
    assert.ok(!existsSync(join(dir, "lock")), "a refused start gives the directory back");
  });

  test("a missing batch between two files is damage", async () => {
    const { dir } = await crashedWithThreeFiles();
    const [first = "", second = ""] = journalFiles(dir);
    spoil(first, framesOf(first).offsets.at(-1) ?? 0);
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => error instanceof DirectoryError && error.message.includes(second));
  });

  test("a file that lost its only frame is damage, also when nothing before it tells", async () => {
    const engine = await openEngine();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
    const stream = await created(engine.storage, "s");
    for (let index = 0; journalFiles(engine.dir).length < 2; index += 1) await append(engine.storage, stream, bytesOf(3000, index));
    // More at once than a file holds: all of it is one frame.
    for (let files = 2; files < 4; files += 1)
      await Promise.all(Array.from({ length: 25 }, (_, index) => append(engine.storage, stream, bytesOf(3000, index))));
    await append(engine.storage, stream, "!");
    const dir = await crash(engine);
    const [oldest = "", second = "", third = ""] = journalFiles(dir);
    assert.equal(framesOf(second).offsets.length, 1);
    assert.ok(framesOf(third).offsets.length > 0);
    rmSync(oldest);
    spoil(second, 3000);
    const kept = readFileSync(second);
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => error instanceof DirectoryError && error.message.includes(second));
    assert.deepEqual(readFileSync(second), kept);
  });

  test("files that were made ready and never used are removed", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", "text");
    const dir = await crash(engine);
    const unused = new Layout(dir).journalFile(9);
    writeFileSync(unused, Buffer.alloc(64 * 1024));
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    assert.ok(!existsSync(unused));
    await assertBytes(again, "s", Buffer.from("text"));
  });

  test("a journal from another directory is refused", async () => {
    const [one, other] = [await openEngine(), await openEngine()];
    await created(one.storage, "s");
    await created(other.storage, "s");
    const dir = await crash(one);
    const foreign = await crash(other);
    const path = journalFiles(dir)[0] ?? "";
    writeFileSync(path, readFileSync(journalFiles(foreign)[0] ?? ""));
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
      return error instanceof DirectoryError && error.message.includes(path) && /another directory/.test(error.message);
    });
  });

  test("a directory whose journal is missing is refused", async () => {
    const engine = await openEngine();
    await created(engine.storage, "s");
    const dir = await crash(engine);
    for (const path of journalFiles(dir)) rmSync(path);
    await assert.rejects(
      makeEngine({ dir }).open(),
      (error: unknown) => error instanceof DirectoryError && /journal.*missing/.test(error.message),
    );
  });

  test("bytes of a client that look like a frame are not taken for one", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const path = journalFiles(engine.dir)[0] ?? "";
    // A frame of this very file, as a client could guess it: only the directory's id is a secret.
    const forged = Buffer.from(readFileSync(path).subarray(0, 40));
    const { crc32 } = await import("node:zlib");
    forged.fill(0x41, 32, 40);
    forged.writeUInt32LE(crc32(forged.subarray(12)), 8);
    const payload = Buffer.alloc(3 * SECTOR_BYTES);
    // The payload of the next frame begins at byte 80 of its sector, or 160 with the record that binds its handle.
    for (let at = 0; at + 40 <= payload.length; at += 1) if ((80 + at) % SECTOR_BYTES === 0) forged.copy(payload, at);
    await append(engine.storage, stream, payload);
    const dir = await crash(engine);
    const copied = journalFiles(dir)[0] ?? "";
    const last = framesOf(copied).offsets.at(-1) ?? 0;
    spoil(copied, last + 60);
    const again = await openEngine({ dir });
    t.after(() => again.storage.close());
    await assertBytes(again, "s", Buffer.from("kept"));
  });
});

describe("damaged streams", () => {
  /** A directory with three streams that are in their own files, closed in good order. */
  async function closedDirectory(): Promise<string> {
    const engine = await openEngine();
    for (const name of ["bad", "good", "fine"]) await created(engine.storage, name, bytesOf(3000));
    await engine.storage.close();
    return engine.dir;
  }

  async function assertOnlyBadFails(dir: string, file: string, problem: RegExp): Promise<void> {
    const engine = await openEngine({ dir });
    await assert.rejects(
      async () => readAll(engine.storage, await loaded(engine.storage, "bad")),
      (error: unknown) => {
        assert.ok(error instanceof DamagedStreamError, String(error));
        assert.equal(error.stream, "bad");
        assert.equal(error.file, file);
        assert.match(error.message, problem);
        return true;
      },
    );
    for (const name of ["good", "fine"]) await assertBytes(engine, name, bytesOf(3000));
    await engine.storage.close();
  }

  test("a segment that is too short is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const segment = segmentPath(new Layout(dir).streamDirectory("bad"), 0);
    truncateSync(segment, 2999);
    await assertOnlyBadFails(dir, segment, /./);
  });

  test("a segment that is missing is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const segment = segmentPath(new Layout(dir).streamDirectory("bad"), 0);
    rmSync(segment);
    await assertOnlyBadFails(dir, segment, /it is missing/);
  });

  test("a sidecar that is missing is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const sidecar = sidecarPath(new Layout(dir).streamDirectory("bad"));
    rmSync(sidecar);
    await assertOnlyBadFails(dir, sidecar, /it is missing/);
  });

  test("a sidecar with a flipped bit is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const sidecar = sidecarPath(new Layout(dir).streamDirectory("bad"));
    spoil(sidecar, 60);
    await assertOnlyBadFails(dir, sidecar, /./);
  });

  test("a sidecar of another stream is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const layout = new Layout(dir);
    const sidecar = sidecarPath(layout.streamDirectory("bad"));
    writeFileSync(sidecar, readFileSync(sidecarPath(layout.streamDirectory("good"))));
    await assertOnlyBadFails(dir, sidecar, /it is that of "good"/);
  });

  test("a flipped bit in a large payload that only its segment holds is found before it is served", async (t) => {
    for (const place of [0, 4000, 8999]) {
      const engine = await openEngine();
      await append(engine.storage, await created(engine.storage, "bad", bytesOf(4500)), bytesOf(4500, 1));
      const left = await crash(engine);
      const directory = new Layout(left).streamDirectory("bad");
      spoil(segmentPath(directory, place < 4500 ? 0 : 4500), place % 4500);
      const again = await openEngine({ dir: left });
      t.after(() => again.storage.close());
      await assert.rejects(async () => readAll(again.storage, await loaded(again.storage, "bad")), DamagedStreamError);
    }
  });

  for (const [problem, harm] of [
    ["a missing sidecar", (path: string) => rmSync(path)],
    ["a damaged sidecar", (path: string) => spoil(path, 100)],
  ] as const) {
    test(`${problem} of a stream in the journal is told, its records are kept, and the others serve`, async (t) => {
      const dir = await closedDirectory();
      const engine = await openEngine({ dir });
      for (const name of ["bad", "good"]) await append(engine.storage, await loaded(engine.storage, name), "more");
      const left = await crash(engine);
      harm(sidecarPath(new Layout(left).streamDirectory("bad")));
      const again = await openEngine({ dir: left });
      t.after(() => again.storage.close());
      await assert.rejects(again.storage.load("bad"), (error: unknown) => error instanceof DamagedStreamError && error.stream === "bad");
      await assertBytes(again, "good", Buffer.concat([bytesOf(3000), Buffer.from("more")]));
      await again.files.idle();
      assert.ok(again.log.some(({ level, message }) => level === "error" && message === "a stream is damaged"));
      assert.equal(readdirSync(join(left, "journal")).filter((name) => name.endsWith(".kept")).length, 1, "its records are kept");
      await assert.rejects(again.storage.load("bad"), DamagedStreamError);
    });
  }

  test("a journal that goes on behind the stream's end is damage of that stream only", async (t) => {
    const dir = await closedDirectory();
    const old = readFileSync(sidecarPath(new Layout(dir).streamDirectory("bad")));
    const engine = await openEngine({ dir });
    for (const name of ["bad", "good"]) await append(engine.storage, await loaded(engine.storage, name), "more");
    const second = await reopen(engine);
    for (const name of ["bad", "good"]) await append(second.storage, await loaded(second.storage, name), "!");
    const left = await crash(second);
    writeFileSync(sidecarPath(new Layout(left).streamDirectory("bad")), old);
    const again = await openEngine({ dir: left });
    t.after(() => again.storage.close());
    await assert.rejects(again.storage.load("bad"), (error: unknown) => error instanceof DamagedStreamError && /3004/.test(error.message));
    await assertBytes(again, "good", Buffer.concat([bytesOf(3000), Buffer.from("more!")]));
  });
});
