import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readWhole, type Files } from "../../src/storage/file/disk/files.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";

const SECTOR_BYTES = 512;
const SEEDS = 60;

interface Run {
  readonly disk: SimulatedDisk;
  readonly files: Files;
}

function mounted(seed: number): Run {
  const disk = new SimulatedDisk(seed);
  return { disk, files: disk.mount() };
}

/** A file with `bytes` whose directory and content are permanent. */
async function synced({ files }: Run, path: string, bytes: Buffer): Promise<void> {
  const file = await files.open(path, "write");
  await file.write(bytes, 0);
  await file.sync();
  await file.close();
  await files.syncDirectory("/");
}

async function write(files: Files, path: string, bytes: Buffer, position: number): Promise<void> {
  const file = await files.open(path, "write");
  await file.write(bytes, position);
}

/** What each of many seeds leaves of the file at /file. */
async function leftBy(history: (run: Run) => Promise<void>, kind: "kill" | "power"): Promise<(Buffer | null)[]> {
  const left: (Buffer | null)[] = [];
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const run = mounted(seed);
    await history(run);
    run.disk.crash(kind);
    left.push(run.disk.contentOf("/file"));
  }
  return left;
}

/** One letter for each sector of a file. */
function sectorsOf(bytes: Buffer | null): string {
  return bytes === null
    ? "none"
    : Array.from({ length: Math.ceil(bytes.length / SECTOR_BYTES) }, (_, sector) =>
        String.fromCharCode(bytes[sector * SECTOR_BYTES] ?? 0),
      ).join("");
}

describe("after the power went", () => {
  test("what was synced is there, whatever came after it", async () => {
    const left = await leftBy(async (run) => {
      await synced(run, "/file", Buffer.alloc(4 * SECTOR_BYTES, "a"));
      await write(run.files, "/file", Buffer.alloc(2 * SECTOR_BYTES, "b"), 2 * SECTOR_BYTES);
    }, "power");
    for (const bytes of left) assert.match(sectorsOf(bytes), /^aa[ab][ab]$/);
  });

  test("any of the unsynced sectors are there, in any order", async () => {
    const left = await leftBy(async (run) => {
      await synced(run, "/file", Buffer.alloc(2 * SECTOR_BYTES, "a"));
      await write(run.files, "/file", Buffer.alloc(SECTOR_BYTES, "b"), 0);
      await write(run.files, "/file", Buffer.alloc(SECTOR_BYTES, "c"), SECTOR_BYTES);
    }, "power");
    assert.deepEqual([...new Set(left.map(sectorsOf))].sort(), ["aa", "ac", "ba", "bc"]);
  });

  test("a new file is there or not, and surely there once its directory was synced", async () => {
    const create = async ({ files }: Run): Promise<void> => {
      const file = await files.createNew("/file");
      await file.close();
    };
    const unsure = await leftBy(create, "power");
    assert.ok(unsure.includes(null) && unsure.some((bytes) => bytes !== null));
    const sure = await leftBy((run) => create(run).then(() => run.files.syncDirectory("/")), "power");
    assert.ok(!sure.includes(null));
  });

  test("what a failed sync left behind is not made permanent by the next one, unless it is written again", async () => {
    const failThenSync =
      (again: boolean) =>
      async (run: Run): Promise<void> => {
        await synced(run, "/file", Buffer.alloc(SECTOR_BYTES, "a"));
        await write(run.files, "/file", Buffer.alloc(SECTOR_BYTES, "b"), 0);
        const file = await run.files.open("/file", "write");
        run.disk.failAfter(0, "EIO", (call) => call === "sync");
        await assert.rejects(file.sync(), { code: "EIO" });
        if (again) await file.write(Buffer.alloc(SECTOR_BYTES, "b"), 0);
        await file.sync();
      };
    const lost = (await leftBy(failThenSync(false), "power")).map(sectorsOf);
    assert.ok(lost.includes("a") && lost.includes("b"));
    assert.ok((await leftBy(failThenSync(true), "power")).every((bytes) => sectorsOf(bytes) === "b"));
  });
});

test("after a kill everything that was written is there", async () => {
  const left = await leftBy(({ files }) => write(files, "/file", Buffer.alloc(3 * SECTOR_BYTES, "x"), 0), "kill");
  for (const bytes of left) assert.equal(sectorsOf(bytes), "xxx");
});

test("a socket answers for as long as its process lives, and is left by a crash", async () => {
  for (const kind of ["kill", "power"] as const) {
    const { disk, files } = mounted(1);
    const listener = await files.listen("/a", () => undefined);
    await files.listen("/b", () => undefined);
    await files.syncDirectory("/");
    assert.deepEqual([await files.reach("/a"), await files.reach("/c")], ["answers", "missing"]);
    await listener.close();
    assert.deepEqual([await files.reach("/a"), await files.reach("/b")], ["refuses", "answers"]);
    await assert.rejects(
      files.listen("/a", () => undefined),
      { code: "EADDRINUSE" },
    );
    disk.crash(kind);
    assert.equal(await disk.mount().reach("/b"), "refuses");
  }
});

test("what a disk at rest has written out survives the power as well", async () => {
  const left = await leftBy(async (run) => {
    await write(run.files, "/file", Buffer.alloc(3 * SECTOR_BYTES, "x"), 0);
    run.disk.crash("kill");
    run.disk.settle();
  }, "power");
  for (const bytes of left) assert.equal(sectorsOf(bytes), "xxx");
});

test("long reads and writes may take several calls, and bring the same", async () => {
  const bytes = Buffer.from(Array.from({ length: 5000 }, (_, index) => index % 251));
  let reads = 0;
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const run = mounted(seed);
    await synced(run, "/file", bytes);
    run.disk.trace = (line) => void (reads += line.startsWith("disk: read") ? 1 : 0);
    assert.ok((await readWhole(run.files, "/file"))?.equals(bytes));
  }
  assert.ok(reads > SEEDS, "no read was short");
});

test("faults come after the calls that go well, as often as was asked", async () => {
  const { disk, files } = mounted(1);
  disk.failAfter(1, "EMFILE", (call) => call.startsWith("open"), 2);
  const open = (): Promise<string> =>
    files.open("/file", "write").then(
      () => "open",
      (error: Error) => error.message.slice(0, 6),
    );
  assert.deepEqual([await open(), await open(), await open(), await open()], ["open", "EMFILE", "EMFILE", "open"]);
});

test("a slow call takes seconds of the clock, and others overtake it", async () => {
  const { disk, files } = mounted(1);
  const clock = new ManualClock();
  const file = await files.open("/file", "write");
  disk.scheduler.clock = clock;
  disk.scheduler.slowPart = 1;
  let isDone = false;
  const slow = file.write(Buffer.from("slow"), 0).then(() => (isDone = true));
  disk.scheduler.slowPart = 0;
  await files.list("/");
  assert.equal(isDone, false);
  clock.advance(10_000);
  await slow;
});

test("a flipped bit stays flipped, whatever the crash leaves", async () => {
  const left = await leftBy(async (run) => {
    await synced(run, "/file", Buffer.from("a"));
    await write(run.files, "/file", Buffer.from("e"), 0);
    run.disk.flipBit("/file", 1);
  }, "power");
  assert.deepEqual([...new Set(left.map(String))].sort(), ["c", "g"]);
});

test("a process that ends in the middle of a call is not told of it, and the call has taken effect", async () => {
  const { disk, files } = mounted(1);
  const file = await files.open("/file", "write");
  const ended = new Promise<void>((resolve) => disk.crashAmid(1, "kill", (call) => call === "write", resolve));
  await file.write(Buffer.from("one"), 0);
  let isTold = false;
  void file.write(Buffer.from("two"), 3).then(() => (isTold = true));
  await ended;
  await disk.mount().list("/");
  assert.deepEqual([isTold, String(disk.contentOf("/file"))], [false, "onetwo"]);
});

test("calls that are late are overtaken by others, and come before the end", async () => {
  const { disk, files } = mounted(1);
  disk.slow = { matches: (call) => call === "mkdir", turns: 100 };
  const order: string[] = [];
  const late = files.makeDirectory("/late").then(() => order.push("late"));
  for (let count = 0; count < 3; count += 1) await files.list("/");
  order.push("others");
  await late;
  assert.deepEqual(order, ["others", "late"]);
});

test("where each write needs room, none is taken on a full disk, and all else is", async () => {
  const { disk, files } = mounted(1);
  const file = await files.open("/file", "log");
  await file.write(Buffer.from("a"), 0);
  disk.isFull = true;
  await file.write(Buffer.from("b"), 0);
  disk.isCopyOnWrite = true;
  await assert.rejects(file.write(Buffer.from("c"), 0), { code: "ENOSPC" });
  await (await files.open("/file", "write")).sync();
  await files.rename("/file", "/other");
});
