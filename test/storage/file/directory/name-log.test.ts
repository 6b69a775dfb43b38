import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { ALL_NAMES } from "../../../../src/protocol/names/name-range.js";
import { NameLog, type NameLogOptions } from "../../../../src/storage/file/directory/name-log.js";
import { NameLines } from "../../../../src/storage/file/directory/names-file.js";
import type { StoredStream, StreamEvents } from "../../../../src/storage/storage.js";
import { Random } from "../../../helpers/random.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { Barrier, failing } from "../../../helpers/watched-files.js";

const DIRECTORY_ID = Buffer.from("0011223344556677", "hex");

/** One life of a log of names, and what happens to streams in it. */
class Life {
  readonly log: NameLog;
  readonly #events = new EventEmitter<StreamEvents>();
  readonly changes = { lastBatch: 0 };

  /** The journal has the batches from `firstBatch` to the one before `nextBatch`, with `journaled`. */
  constructor(rooms: FileRooms, [firstBatch, nextBatch]: [number, number], journaled: string[] = [], maxBytes = 1e6) {
    this.changes.lastBatch = nextBatch;
    const recovered = {
      firstBatch,
      lastBatch: nextBatch - 1,
      unopened: { created: () => journaled.map((name) => ({ name, batch: nextBatch - 1 })) },
    };
    const options: NameLogOptions = {
      ...rooms.parts,
      directoryId: DIRECTORY_ID,
      events: this.#events,
      recovered,
      changes: this.changes,
      maxBytes,
    };
    this.log = new NameLog(options);
  }

  make(...names: string[]): void {
    this.changes.lastBatch += 1;
    for (const name of names) this.#events.emit("created", { name } as StoredStream);
  }

  remove(...names: string[]): void {
    this.changes.lastBatch += 1;
    for (const name of names) this.#events.emit("deleted", name);
  }

  /** The names that it has, in order; `null` when it has not all. */
  async names(): Promise<string[] | null> {
    const logged = await this.log.names();
    if (logged === null) return null;
    return [...logged.saved.map((names) => names.slice(ALL_NAMES, Infinity)), logged.latest].flat().sort();
  }
}

/** A log of a new directory that a checkpoint has put `names` into, and the batch that this was after. */
async function saved(rooms: FileRooms, ...names: string[]): Promise<number> {
  const life = new Life(rooms, [1, 1]);
  life.make(...names);
  await life.log.checkpoint();
  await life.log.end();
  return life.changes.lastBatch;
}

describe("a log of names", () => {
  test("has all names of a new directory, before and after a checkpoint", async () => {
    const life = new Life(fileRooms(), [1, 1]);
    assert.deepEqual(await life.names(), []);
    life.make("b", "a");
    assert.deepEqual(await life.names(), ["a", "b"]);
    await life.log.checkpoint();
    life.make("c");
    assert.deepEqual(await life.names(), ["a", "b", "c"]);
  });

  test("counts at a start while the journal has all that came after it", async () => {
    const rooms = fileRooms();
    const batch = await saved(rooms, "a", "b");
    const next = new Life(rooms, [batch + 1, batch + 4], ["c"]);
    assert.deepEqual(await next.names(), ["a", "b", "c"]);
  });

  for (const [what, first, last] of [
    ["has forgotten a batch since", 2, 9],
    ["ends before it", -1, 0],
  ] as const) {
    test(`does not count, and is removed, where the journal ${what}`, async () => {
      const rooms = fileRooms();
      const batch = await saved(rooms, "a");
      const next = new Life(rooms, [batch + first, batch + last]);
      assert.equal(await next.names(), null);
      assert.ok(!existsSync(rooms.layout.names));
      next.make("b");
      await next.log.checkpoint();
      assert.ok(!existsSync(rooms.layout.names));
    });
  }

  test("that is missing does not count either, unless the journal has everything from the first batch on", async () => {
    assert.equal(await new Life(fileRooms(), [2, 9]).names(), null);
    assert.deepEqual(await new Life(fileRooms(), [1, 9], ["a"]).names(), ["a"]);
  });

  test("adds to its file at each checkpoint, also that nothing was made", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [1, 1]);
    for (const names of [["a"], [], ["b"]]) {
      life.make(...names);
      const before = existsSync(rooms.layout.names) ? readFileSync(rooms.layout.names) : Buffer.alloc(0);
      await life.log.checkpoint();
      const after = readFileSync(rooms.layout.names);
      assert.deepEqual(after.subarray(0, before.length), before);
      assert.ok(after.length > before.length);
    }
    const { lastBatch } = life.changes;
    assert.deepEqual(await new Life(rooms, [lastBatch + 1, lastBatch + 2]).names(), ["a", "b"]);
  });

  test("goes by its last sound section: the journal has the rest, or it does not count", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [1, 1]);
    life.make("a");
    await life.log.checkpoint();
    const { lastBatch } = life.changes;
    const first = readFileSync(rooms.layout.names).length;
    life.make("b");
    await life.log.checkpoint();
    const whole = readFileSync(rooms.layout.names);
    for (let length = first; length < whole.length; length += 1) {
      writeFileSync(rooms.layout.names, whole.subarray(0, length));
      assert.deepEqual(await new Life(rooms, [lastBatch + 1, lastBatch + 9], ["b"]).names(), ["a", "b"]);
    }
    const forgotten = new Life(rooms, [lastBatch + 2, lastBatch + 9]);
    assert.equal(await forgotten.names(), null);
  });

  test("writes over what is left of a torn section", async () => {
    const rooms = fileRooms();
    const batch = await saved(rooms, "a");
    writeFileSync(rooms.layout.names, "half a section that is longer than the next", { flag: "a" });
    const next = new Life(rooms, [batch + 1, batch + 2]);
    next.make("b");
    await next.log.checkpoint();
    const { lastBatch } = next.changes;
    assert.deepEqual(await new Life(rooms, [lastBatch + 1, lastBatch + 2]).names(), ["a", "b"]);
  });

  for (const [what, change] of [
    ["has a byte that is wrong", (bytes: Buffer) => Buffer.from(bytes.toString().replace("\nb\n", "\nc\n"))],
    ["says that it has none", (bytes: Buffer) => Buffer.from(bytes.toString().replace(/"made":\d+/, '"made":0'))],
    ["is of another directory", (bytes: Buffer) => Buffer.from(bytes.toString().replace('y":"00', 'y":"01'))],
    ["is of a later format", (bytes: Buffer) => Buffer.from(bytes.toString().replace('"format":1', '"format":2'))],
    ["is empty", () => Buffer.alloc(0)],
    ["is nothing of the kind", () => Buffer.from("a\nb\n")],
    ["was saved by an older version", () => Buffer.from('{"format":1,"directory":"0011223344556677","batch":2,"crc32":"0"}\na\n')],
  ] as const) {
    test(`does not count where its file ${what}`, async () => {
      const rooms = fileRooms();
      const batch = await saved(rooms, "a", "b");
      writeFileSync(rooms.layout.names, change(readFileSync(rooms.layout.names)));
      assert.equal(await new Life(rooms, [batch + 1, batch + 2]).names(), null);
    });
  }

  test("is written anew, without what is gone, when it has grown to twice its size", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [1, 1]);
    const names = Array.from({ length: 2000 }, (_, at) => `${String(at).padStart(4, "0")}${"x".repeat(40)}`);
    life.make("kept", ...names);
    life.remove("kept");
    life.make("kept");
    let most = 0;
    for (let round = 0; round < 10; round += 1) {
      await life.log.checkpoint();
      most = Math.max(most, readFileSync(rooms.layout.names).length);
      life.remove(...names);
      await life.log.checkpoint();
      life.make(...names);
    }
    life.remove(...names);
    await life.log.checkpoint();
    for (let round = 0; round < 2000 && readFileSync(rooms.layout.names).length > 1000; round += 1) {
      life.make();
      await life.log.checkpoint();
    }
    assert.ok(most < 700_000, `${most} bytes`);
    assert.deepEqual(await life.names(), ["kept"]);
    const { lastBatch } = life.changes;
    assert.deepEqual(await new Life(rooms, [lastBatch + 1, lastBatch + 2]).names(), ["kept"]);
  });

  test("takes all names anew, with those that change while they are written", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [5, 9], ["a"]);
    assert.equal(await life.names(), null);
    const disk = new Barrier();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && path.includes("names") ? disk.opened : undefined);
    const replaced = life.log.replace(() => ["a", "b"]);
    await rooms.files.idle();
    life.make("c");
    disk.open();
    await replaced;
    assert.deepEqual(await life.names(), ["a", "b", "c"]);
    await life.log.checkpoint();
    const { lastBatch } = life.changes;
    assert.deepEqual(await new Life(rooms, [lastBatch + 1, lastBatch + 2]).names(), ["a", "b", "c"]);
    await life.log.replace(() => null);
    assert.deepEqual(await life.names(), ["a", "b", "c"]);
  });

  for (const kind of ["open", "write", "rename", "syncDirectory"]) {
    test(`that can't be written (${kind}) is none from then on, and nobody else suffers`, async () => {
      const rooms = fileRooms();
      const batch = await saved(rooms, "a");
      const life = new Life(rooms, [batch + 1, batch + 2]);
      rooms.files.gate = failing("EIO", [kind], /names|data$/);
      life.make("b");
      await life.log.checkpoint();
      await life.log.replace(() => ["a", "b"]);
      rooms.files.gate = null;
      assert.equal(await life.names(), null);
      assert.deepEqual(rooms.faults, []);
    });
  }

  test("keeps no file that is too large", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [1, 1], [], 500);
    life.make("x".repeat(600));
    await life.log.checkpoint();
    assert.ok(!existsSync(rooms.layout.names));
    assert.equal(await life.names(), null);
    const others = fileRooms();
    const batch = await saved(others, "x".repeat(600));
    assert.equal(await new Life(others, [batch + 1, batch + 2], [], 500).names(), null);
    assert.ok(!existsSync(others.layout.names));
  });

  test("writes nothing after its end, or after the disk has failed", async () => {
    const rooms = fileRooms();
    const life = new Life(rooms, [1, 1]);
    await life.log.end();
    life.make("a");
    await life.log.checkpoint();
    const failed = new Life(rooms, [1, 1]);
    rooms.parts.state.fail(new Error("as the test wants it"));
    failed.make("a");
    await failed.log.checkpoint();
    assert.ok(!existsSync(rooms.layout.names));
  });
});

test("names in a file are found in their order, which is that of the list", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const some = (): string => `${random.pick(["a", "é", "𝄞", "\uffee", "z".repeat(50)])}${random.integer(0, 3000)}`;
  const names = [...new Set(Array.from({ length: random.integer(0, 2000) }, some))].sort();
  const lines = new NameLines(Buffer.from(names.map((name) => `${name}\n`).join("")));
  assert.deepEqual([...lines.pieces()].flat(), names, `seed ${seed}`);
  for (const from of ["", "\uffff", ...Array.from({ length: 300 }, some)]) {
    const expected = names.filter((name) => name >= from).slice(0, 7);
    assert.deepEqual(lines.slice({ from, to: null }, 7), expected, `seed ${seed}, from ${from}`);
    const to = expected[random.integer(0, 7)] ?? some();
    const before = expected.filter((name) => name < to);
    assert.deepEqual(lines.slice({ from, to }, 7), before, `seed ${seed}, from ${from} to ${to}`);
  }
});
