import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { segmentPath } from "../../../../src/storage/file/format/layout.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { Admission } from "../../../../src/storage/file/writing/admission.js";
import type { Journal } from "../../../../src/storage/file/journal/journal.js";
import { RecordKind } from "../../../../src/storage/file/format/record.js";
import type { Settlement } from "../../../../src/storage/storage.js";
import { bytesOf, recordOf, rollAt, SMALL } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { Barrier, diskError, type Operation } from "../../../helpers/watched-files.js";

const SEGMENT = /\.seg$/;

interface TestAdmission {
  readonly admission: Admission;
  readonly journal: Journal;
  /** Hands in `size` bytes; `told` gets `label` and how it settles. */
  put(stream: FileStream, label: string, size: number): void;
  readonly faults: readonly Error[];
}

async function admissionOf(rooms: FileRooms, segmentBytes = SMALL.segmentBytes): Promise<TestAdmission> {
  const journal = rooms.journal({
    apply: ({ stream, change, segmentStart }, batch) => stream.advance(change, change.payload.length, segmentStart, batch),
    batchSettled: () => {},
  });
  await journal.open();
  const admission = new Admission(rooms.parts, {
    journal,
    segmentRoll: rollAt(segmentBytes),
    flusher: { lacksRoom: false, isBusy: false },
    diskSpace: rooms.diskSpace,
    bypassBytes: SMALL.journalBypassBytes,
    tailCacheBytes: SMALL.tailCacheBytes,
  });
  const put = (stream: FileStream, label: string, size: number): void =>
    admission.put(stream, RecordKind.append, recordOf(bytesOf(size)), (how: Settlement) => rooms.told.push(`${label} ${how}`));
  return { admission, journal, put, faults: rooms.faults };
}

describe("large payloads", () => {
  test("go past the journal, and what comes behind them waits its turn", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    const disk = [new Barrier(), new Barrier()];
    let writes = 0;
    rooms.files.gate = ({ kind, path }) => (kind === "write" && SEGMENT.test(path) ? disk[(writes += 1) - 1]?.opened : undefined);
    put(stream, "small", 10);
    put(stream, "large", 5000);
    put(stream, "behind", 10);
    put(stream, "large too", 6000);
    admission.barrier(stream, (how) => rooms.told.push(`barrier ${how}`));
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small durable"]);
    disk[0]?.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small durable", "large durable", "behind durable"]);
    disk[1]?.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told.slice(3), ["large too durable", "barrier durable"]);
    assert.equal(stream.state.tail, 11_020);
    assert.equal(stream.held, null);
    await journal.close();
  });

  test("of one stream hold up no other", async () => {
    const rooms = fileRooms();
    const { journal, put } = await admissionOf(rooms);
    const [slow, other] = [rooms.stream("slow"), rooms.stream("other")];
    const disk = new Barrier();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && SEGMENT.test(path) ? disk.opened : undefined);
    put(slow, "large", 5000);
    put(other, "other", 10);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["other durable"]);
    disk.open();
    await rooms.files.idle();
    await journal.close();
  });

  test("that find no room fail with what is behind them, after what was before them, and give back their place", async () => {
    const rooms = fileRooms();
    const { journal, put, faults } = await admissionOf(rooms);
    const stream = rooms.stream();
    const journalDisk = new Barrier();
    rooms.files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return journalDisk.opened;
      return kind === "write" && SEGMENT.test(path) ? diskError("ENOSPC") : undefined;
    };
    put(stream, "before", 10);
    put(stream, "large", 5000);
    put(stream, "behind", 10);
    put(stream, "large behind", 5000);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, []);
    journalDisk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["before durable", "large storage-full", "behind storage-full", "large behind storage-full"]);
    assert.deepEqual([stream.reservedTail, stream.reservedSegment.start], [10, 0]);
    assert.deepEqual(faults, []);
    rooms.files.gate = null;
    put(stream, "again", 5000);
    await rooms.files.idle();
    assert.equal(rooms.told.at(-1), "again durable");
    await journal.close();
  });

  test("behind what failed write nothing: their stream's directory may be on its way out", async () => {
    const rooms = fileRooms();
    const { journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    const disk = new Barrier();
    let writes = 0;
    rooms.files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return diskError("ENOSPC");
      if (kind !== "write" || !SEGMENT.test(path)) return undefined;
      writes += 1;
      return disk.opened;
    };
    put(stream, "small", 10);
    put(stream, "large", 5000);
    put(stream, "large behind", 5000);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small storage-full"]);
    rooms.files.gate = ({ kind, path }) => void (writes += kind === "write" && SEGMENT.test(path) ? 1 : 0);
    disk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small storage-full", "large storage-full", "large behind storage-full"]);
    assert.equal(writes, 1);
    put(stream, "again", 5000);
    await rooms.files.idle();
    assert.deepEqual([rooms.told.at(-1), stream.state.tail], ["again durable", 5000]);
    await journal.close();
  });

  for (const step of ["open", "size", "write", "sync"] as const) {
    test(`behind what failed leave nothing in their segment where they wait for its ${step}`, async () => {
      const rooms = fileRooms();
      const { journal, put } = await admissionOf(rooms, 2 * SMALL.segmentBytes);
      const stream = rooms.stream();
      const disk = new Barrier();
      rooms.files.gate = ({ kind, path }) => {
        if (kind === "writeThen") return diskError("ENOSPC");
        return kind === step && SEGMENT.test(path) ? disk.opened : undefined;
      };
      put(stream, "small", 10);
      put(stream, "large", 5000);
      await rooms.files.idle();
      assert.deepEqual(rooms.told, ["small storage-full"]);
      rooms.files.gate = null;
      disk.open();
      await rooms.files.idle();
      assert.deepEqual(rooms.told, ["small storage-full", "large storage-full"]);
      const bytes = bytesOf(5);
      rooms.advance(stream, bytes);
      await rooms.writer.flush(stream);
      assert.deepEqual(readFileSync(segmentPath(stream.directory, 0)), bytes);
      await journal.close();
    });
  }

  test("that fail after what was before them do not fail what has their place by then", async () => {
    const rooms = fileRooms();
    const { journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    const disk = new Barrier();
    const isLarge = ({ kind, path }: Operation): boolean => kind === "write" && SEGMENT.test(path);
    const late = (operation: Operation): Promise<void> | undefined =>
      isLarge(operation) ? disk.opened.then(() => Promise.reject(diskError("ENOSPC"))) : undefined;
    rooms.files.gate = (operation) => (operation.kind === "writeThen" ? diskError("ENOSPC") : late(operation));
    put(stream, "small", 10);
    put(stream, "large", 5000);
    put(stream, "behind", 10);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small storage-full"]);
    rooms.files.gate = late;
    put(stream, "new", 7);
    put(stream, "large and new", 6000);
    await rooms.files.idle();
    rooms.files.gate = null;
    disk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told.slice(1), ["large storage-full", "behind storage-full", "new durable", "large and new durable"]);
    assert.deepEqual([stream.reservedTail, stream.state.tail], [6007, 6007]);
    await journal.close();
  });

  test("that the disk fails for are a fault", async () => {
    const rooms = fileRooms();
    const { journal, put, faults } = await admissionOf(rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "sync" && SEGMENT.test(path) ? diskError("EIO") : undefined);
    put(stream, "large", 5000);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["large storage-unavailable"]);
    assert.equal(faults.length, 1);
    await journal.close();
  });
});

describe("a large payload that fails", () => {
  test("does not take along the note of a read, which changed nothing", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && SEGMENT.test(path) ? diskError("EMFILE") : undefined);
    const before = rooms.files.count("writeThen", /./);
    put(stream, "large", 5000);
    put(stream, "behind", 10);
    admission.put(stream, RecordKind.touch, recordOf("", { atMs: 7 }), null);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["large overloaded", "behind overloaded"]);
    assert.equal(rooms.files.count("writeThen", /./), before + 1);
    await journal.close();
  });

  test("as a creation takes along the note of a read: a stream that never was has none", async () => {
    const rooms = fileRooms();
    const { admission, journal } = await admissionOf(rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && SEGMENT.test(path) ? diskError("ENOSPC") : undefined);
    const before = rooms.files.count("writeThen", /./);
    admission.put(stream, RecordKind.create, recordOf(bytesOf(5000)), (how) => {
      stream.deleted = true;
      rooms.told.push(how);
    });
    admission.put(stream, RecordKind.touch, recordOf("", { atMs: 7 }), null);
    await rooms.files.idle();
    await journal.drain();
    assert.deepEqual([rooms.told, stream.held], [["storage-full"], null]);
    assert.equal(rooms.files.count("writeThen", /./), before);
    await journal.close();
  });
});

describe("a deletion behind a large payload", () => {
  interface Deletion extends TestAdmission {
    readonly rooms: FileRooms;
    readonly stream: FileStream;
    delete(): void;
  }

  async function deletion(): Promise<Deletion> {
    const rooms = fileRooms();
    const made = await admissionOf(rooms);
    const stream = rooms.stream();
    const settle = (how: Settlement): void => void rooms.told.push(`delete ${how}`);
    return { ...made, rooms, stream, delete: () => made.admission.put(stream, RecordKind.delete, recordOf(""), settle) };
  }

  test("that finds no room goes on: it makes some", async () => {
    const { rooms, stream, journal, put, delete: remove } = await deletion();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && SEGMENT.test(path) ? diskError("ENOSPC") : undefined);
    put(stream, "large", 5000);
    put(stream, "behind", 10);
    remove();
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["large storage-full", "behind storage-full", "delete durable"]);
    await journal.close();
  });

  test("whose place what failed before it took along goes on, too", async () => {
    const { rooms, stream, journal, put, delete: remove } = await deletion();
    const disk = new Barrier();
    rooms.files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return diskError("ENOSPC");
      return kind === "write" && SEGMENT.test(path) ? disk.opened : undefined;
    };
    put(stream, "small", 10);
    put(stream, "large", 5000);
    remove();
    await rooms.files.idle();
    rooms.files.gate = null;
    disk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small storage-full", "large storage-full", "delete durable"]);
    await journal.close();
  });

  test("that was the creation, or shows damage, fails with it", async () => {
    for (const [code, how] of [
      ["ENOSPC", "storage-full"],
      ["EACCES", "stream-damaged"],
    ] as const) {
      const { rooms, stream, admission, journal, delete: remove } = await deletion();
      rooms.files.gate = ({ kind, path }) => (kind === "open" && SEGMENT.test(path) ? diskError(code) : undefined);
      admission.put(stream, RecordKind.create, recordOf(bytesOf(5000)), () => void (stream.deleted = how === "storage-full"));
      remove();
      await rooms.files.idle();
      assert.deepEqual(rooms.told, [`delete ${how}`]);
      await journal.close();
    }
  });
});

describe("a barrier", () => {
  test("on a stream at rest settles at once", async () => {
    const rooms = fileRooms();
    const { admission, journal } = await admissionOf(rooms);
    admission.barrier(rooms.stream(), (how) => rooms.told.push(how));
    assert.deepEqual(rooms.told, ["durable"]);
    await journal.close();
  });

  test("fails where it was decided on what has failed, and nobody was told yet", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    const disk = new Barrier();
    rooms.files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return diskError("ENOSPC");
      return kind === "write" && SEGMENT.test(path) ? disk.opened : undefined;
    };
    put(stream, "small", 10);
    put(stream, "large", 5000);
    await rooms.files.idle();
    assert.deepEqual(rooms.told, ["small storage-full"]);
    const tell = (label: string) => (how: Settlement) => void rooms.told.push(`${label} ${how}`);
    admission.barrier(stream, tell("on both"), 5010);
    admission.barrier(stream, tell("on nothing"), 0);
    disk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told.slice(1), ["large storage-full", "on both storage-full", "on nothing durable"]);
    await journal.close();
  });

  test("after a failure of the disk says so", async () => {
    const rooms = fileRooms();
    const { admission, journal } = await admissionOf(rooms);
    rooms.state.fail(diskError("EIO"));
    admission.barrier(rooms.stream(), (how) => rooms.told.push(how));
    assert.deepEqual(rooms.told, ["storage-unavailable"]);
    await journal.close();
  });
});

describe("admission", () => {
  const MIB = 1024 * 1024;

  test("is refused after a failure of the disk, whatever the size", async () => {
    const rooms = fileRooms();
    const { admission, journal } = await admissionOf(rooms);
    assert.equal(admission.admit(0), null);
    rooms.state.fail(diskError("EIO"));
    assert.equal(admission.admit(0), "storage-unavailable");
    await journal.close();
  });

  test("is refused when too much waits for the disk; what is larger than the bound is taken alone", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    assert.equal(admission.admit(65 * MIB), null);
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "write" || kind === "writeThen" ? disk.opened : undefined);
    put(rooms.stream("a"), "large", 4096);
    assert.equal(admission.admit(64 * MIB - 4096), null);
    assert.equal(admission.admit(64 * MIB - 4095), "overloaded");
    put(rooms.stream("b"), "small", 1000);
    assert.equal(admission.admit(64 * MIB - 4096), "overloaded");
    disk.open();
    await rooms.files.idle();
    assert.equal(admission.admit(65 * MIB), null);
    await journal.close();
  });

  test("counts what waits behind a large payload", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    const stream = rooms.stream();
    for (const code of [null, "ENOSPC"]) {
      const disk = new Barrier();
      rooms.files.gate = ({ kind, path }) =>
        kind === "write" && SEGMENT.test(path)
          ? disk.opened.then(() => (code === null ? undefined : Promise.reject(diskError(code))))
          : undefined;
      put(stream, "large", 4096);
      for (let index = 0; index < 8; index += 1) put(stream, "behind", 4095);
      assert.equal(admission.admit(64 * MIB - 9 * 4096 + 8), null);
      assert.equal(admission.admit(64 * MIB - 9 * 4096 + 9), "overloaded");
      disk.open();
      await rooms.files.idle();
      assert.equal(rooms.told.length, 9);
      assert.equal(admission.admit(65 * MIB), null);
      rooms.told.length = 0;
    }
    await journal.close();
  });

  test("is refused when too many bytes wait for their segments", async () => {
    const rooms = fileRooms();
    const { admission, journal } = await admissionOf(rooms);
    const stream = rooms.stream();
    for (let index = 0; index < 17; index += 1) rooms.advance(stream, Buffer.alloc(MIB));
    assert.equal(admission.admit(0), "overloaded");
    await rooms.writer.flush(stream);
    assert.equal(admission.admit(0), null);
    await journal.close();
  });

  test("is refused while the disk is full", async () => {
    const rooms = fileRooms();
    const { admission, journal, put } = await admissionOf(rooms);
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    put(rooms.stream(), "x", 1);
    await rooms.files.idle();
    assert.equal(admission.admit(0), "storage-full");
    assert.equal(admission.trouble, "the disk is full");
    rooms.clock.advance(1000);
    await rooms.files.idle();
    assert.equal(admission.admit(0), null);
    assert.equal(admission.trouble, null);
    await journal.close();
  });
});
