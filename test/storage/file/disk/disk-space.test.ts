import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EngineState } from "../../../../src/storage/file/disk/engine-state.js";
import { DiskSpace } from "../../../../src/storage/file/disk/disk-space.js";
import { keptLog } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

interface WatchedRoom {
  readonly diskSpace: DiskSpace;
  readonly state: EngineState;
  readonly probePath: string;
  readonly told: string[];
  /** A second goes by, and what it brings about has happened. */
  second(): Promise<void>;
}

function spaceOf({ files, layout, clock }: FileRooms): WatchedRoom {
  const told: string[] = [];
  const note = (message: string): void => void told.push(message);
  const log = { debug: note, info: note, warn: note, error: note };
  const probePath = join(layout.trash, "probe");
  const state = new EngineState({ clock, log: keptLog().log }, (error) => told.push(error.message)).on("space", () => told.push("found"));
  const diskSpace = new DiskSpace({ files, layout, clock, log, state });
  const second = async (): Promise<void> => {
    clock.advance(1000);
    await files.idle();
  };
  return { diskSpace, state, probePath, told, second };
}

const FULL = "the disk is full: appends are refused until there is room";
const AGAIN = "there is room again: appends are taken";

test("a full disk is looked at every second, and said once to be full and once to have room", async () => {
  const rooms = fileRooms();
  const { diskSpace, probePath, told, second } = spaceOf(rooms);
  rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
  assert.equal(diskSpace.isFull, false);
  diskSpace.lacked({ offset: 0, length: 10 });
  diskSpace.lacked({ offset: 0, length: 10 });
  for (let count = 1; count <= 3; count += 1) {
    await second();
    assert.equal(rooms.files.count("write", /probe$/), count);
    assert.equal(diskSpace.isFull, true);
    assert.ok(!existsSync(probePath));
  }
  rooms.files.gate = null;
  await second();
  assert.equal(diskSpace.isFull, false);
  assert.ok(!existsSync(probePath));
  assert.deepEqual(told, [FULL, AGAIN, "found"]);
  await second();
  assert.equal(rooms.files.count("open", /probe$/), 4, "nobody looks at a disk that has room");
});

for (const { name, skewMs } of SKEWS) {
  test(`a full disk is looked at whenever the timer fires, ${name}`, async () => {
    const rooms = fileRooms(new SkewedClock(skewMs));
    const { diskSpace, told } = spaceOf(rooms);
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
    diskSpace.lacked({ offset: 0, length: 10 });
    for (let looks = 1; looks <= 3; looks += 1) {
      rooms.clock.advance(Math.max(0, 1000 + skewMs));
      rooms.files.gate = looks < 3 ? rooms.files.gate : null;
      await rooms.files.idle();
    }
    assert.deepEqual([diskSpace.isFull, told], [false, [FULL, AGAIN, "found"]]);
  });
}

test("as much is tried as the smallest refused write had, where it was refused, and never more than 16 MiB", async () => {
  const MIB = 1024 * 1024;
  const rooms = fileRooms();
  const { diskSpace, second } = spaceOf(rooms);
  const written = (): number => rooms.files.operations.filter(({ kind }) => kind === "write").reduce((sum, { bytes }) => sum + bytes, 0);
  diskSpace.lacked({ offset: 5, length: 1024 * MIB });
  await second();
  assert.equal(written(), 16 * MIB);
  diskSpace.lacked({ offset: 0, length: 3 * MIB + 1 });
  diskSpace.lacked({ offset: 0, length: 5 * MIB });
  await second();
  assert.equal(written(), 19 * MIB + 1);
});

test("a refusal while it is looked, is looked into again", async () => {
  const rooms = fileRooms();
  const { diskSpace, told, second } = spaceOf(rooms);
  const disk = new Barrier();
  rooms.files.gate = ({ kind }) => (kind === "write" ? disk.opened : undefined);
  diskSpace.lacked({ offset: 0, length: 10 });
  await second();
  diskSpace.lacked({ offset: 0, length: 10 });
  disk.open();
  await rooms.files.idle();
  assert.equal(diskSpace.isFull, true);
  await second();
  assert.deepEqual(told, [FULL, AGAIN, "found"]);
});

test("a disk that fails under it is a fault", async () => {
  const rooms = fileRooms();
  const { diskSpace, told, second } = spaceOf(rooms);
  rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("EIO") : undefined);
  diskSpace.lacked({ offset: 0, length: 10 });
  await second();
  assert.deepEqual(told, [FULL, "EIO: as the test wants it"]);
});

test("at the end of the engine it waits for the look under way, leaves nothing and looks no more", async () => {
  const rooms = fileRooms();
  const { diskSpace, state, probePath, told, second } = spaceOf(rooms);
  const disk = new Barrier();
  rooms.files.gate = ({ kind }) => (kind === "write" ? disk.opened : undefined);
  diskSpace.lacked({ offset: 0, length: 10 });
  await second();
  state.end();
  const stopped = diskSpace.idle();
  assert.ok(existsSync(probePath));
  disk.open();
  await stopped;
  assert.ok(!existsSync(probePath));
  diskSpace.lacked({ offset: 0, length: 10 });
  await second();
  assert.equal(rooms.files.count("open", /probe$/), 1);
  assert.ok(!told.includes("found"));
});
