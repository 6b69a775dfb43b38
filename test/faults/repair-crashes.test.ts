import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readMarker } from "../../src/storage/file/directory/marker.js";
import { FileStorage } from "../../src/storage/file/file-storage.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { repairDirectory } from "../../src/storage/file/offline/repair.js";
import { DamagedStreamError } from "../../src/storage/storage.js";
import { append, created, forked, keptLog, readAll, SMALL } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { SimulatedDisk, type CrashKind } from "../helpers/simulated-disk.js";

const DIR = "/data";
const NAMES = ["a", "b", "c"];
const BIG = "y".repeat(5000);

function engineOn(disk: SimulatedDisk): Promise<FileStorage> {
  return FileStorage.open({
    dir: DIR,
    fsync: true,
    ...SMALL,
    maxInlineIndexBytes: 2,
    clock: new ManualClock(),
    log: keptLog().log,
    files: disk.mount(),
    onFault: assert.ifError,
  });
}

/** A disk with three streams in it, half of them in their segments, half in the journal; every append a batch. */
async function killedServer(seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(seed);
  disk.scheduler.maxDelayTurns = 1;
  const first = await engineOn(disk);
  for (const name of NAMES) assert.equal(await append(first, await created(first, name, name), "1,"), "durable");
  await first.close();
  const second = await engineOn(disk);
  for (const part of ["2,", BIG, "3,"]) {
    for (const name of NAMES) {
      const stream = await second.load(name);
      assert.ok(stream !== null);
      assert.equal(await append(second, stream, `${name}${part}`), "durable");
    }
  }
  disk.crash("kill");
  return disk;
}

function whole(name: string): string {
  return [`1,`, "2,", BIG, "3,"].map((part) => `${name}${part}`).join("");
}

/** Repairs until it is done; ends the first one after `events`. */
async function repairWithCrash(disk: SimulatedDisk, events: number, kind: CrashKind): Promise<void> {
  let crashed = false;
  const died = new Promise<void>((resolve) => disk.crashAfter(events, kind, () => resolve(void (crashed = true))));
  await Promise.race([repair(disk), died]);
  disk.calm();
  if (crashed) await repair(disk);
}

async function repair(disk: SimulatedDisk): Promise<void> {
  const files = disk.mount();
  const layout = new Layout(DIR);
  const directoryId = await readMarker(files, layout);
  assert.ok(directoryId !== null);
  await repairDirectory({ files, layout, directoryId, apply: true, nowMs: 0, log: keptLog().log, say: () => undefined });
}

/** What the stream gives a reader now; `null` when it is refused, whole or where the reader asks. */
async function readOrRefused(storage: FileStorage, name: string): Promise<string | null> {
  try {
    const stream = await storage.load(name);
    return stream === null ? "" : (await readAll(storage, stream)).toString();
  } catch (error) {
    if (error instanceof DamagedStreamError) return null;
    throw error;
  }
}

function pathOf(disk: SimulatedDisk, name: string, file: string): string {
  const path = `${new Layout(DIR).streamDirectory(name)}/${file}`;
  assert.ok(disk.contentOf(path) !== null, `there is no ${path}`);
  return path;
}

/** The file of the journal with the most in it, and where its frames are. */
function journalOf(disk: SimulatedDisk): { path: string; frames: number[]; content: Buffer } {
  const files = disk
    .namesIn(`${DIR}/journal`)
    .filter((name) => name.endsWith(".journal"))
    .map((name) => {
      const path = `${DIR}/journal/${name}`;
      const content = disk.contentOf(path) ?? Buffer.alloc(0);
      const frames: number[] = [];
      for (let offset = 0; offset < content.length; offset += 512)
        if (content.toString("latin1", offset, offset + 4) === "SDJ1") frames.push(offset);
      return { path, frames, content };
    });
  const [longest] = files.sort((left, right) => right.frames.length - left.frames.length);
  assert.ok(longest !== undefined);
  return longest;
}

const HARMS: readonly [what: string, harm: (disk: SimulatedDisk) => void, refused: readonly string[]][] = [
  ["nothing", () => undefined, []],
  [
    "a bit of a record of b in the journal",
    (disk) => {
      const { path, frames, content } = journalOf(disk);
      // The last append of b, before that of c: its payload is the last that its frame has.
      const offset = frames.at(-2) ?? 0;
      disk.flipBit(path, (offset + content.readUInt32LE(offset + 4) - 1) * 8);
    },
    ["b"],
  ],
  [
    "a sector of the journal, of which b's last record is and nobody can tell",
    (disk) => {
      const { path, frames } = journalOf(disk);
      disk.fileAt(path).write(Buffer.alloc(512), frames.at(-2) ?? 0, disk.nextStamp());
      // Else a loss of power takes the harm back.
      disk.settle();
      // c has a record behind it.
    },
    ["a", "b"],
  ],
  ["a bit of the sidecar of b", (disk) => disk.flipBit(pathOf(disk, "b", "meta.json"), 8 * 60), []],
  ["three bits of the sidecar of b", (disk) => [60, 81, 97].forEach((byte) => disk.flipBit(pathOf(disk, "b", "meta.json"), 8 * byte)), []],
  ["a bit of the index of b", (disk) => disk.flipBit(pathOf(disk, "b", "0000000000000000.idx"), 5), []],
  ["a bit of a large append of b", (disk) => disk.flipBit(pathOf(disk, "b", "0000000000000006.seg"), 8 * 100), ["b"]],
];

/** Points at which a repair is ended, spread over all of it. */
const POINTS = 40;

/** How many events a repair takes, more or less. */
async function eventsOf(seed: number, harm: (disk: SimulatedDisk) => void): Promise<number> {
  const disk = await killedServer(seed);
  harm(disk);
  const before = disk.events;
  await repair(disk);
  return disk.events - before;
}

describe("a repair that is ended at any point and done again", () => {
  for (const [index, [what, harm, refused]] of HARMS.entries()) {
    for (const kind of ["kill", "power"] as const) {
      test(`after damage to ${what}, by ${kind}, keeps each stream whole or refuses it`, async () => {
        const total = await eventsOf(1000 * index, harm);
        for (let point = 0; point < POINTS; point += 1) {
          const seed = 1000 * index + point;
          const events = Math.ceil(((point + 1) / POINTS) * total);
          const disk = await killedServer(seed);
          harm(disk);
          await repairWithCrash(disk, events, kind);
          const storage = await engineOn(disk);
          for (const name of NAMES) {
            const expected = refused.includes(name) ? null : whole(name);
            assert.equal(await readOrRefused(storage, name), expected, `${name} after ${events} events, seed ${seed}`);
          }
          await storage.close();
        }
      });
    }
  }
});

const FORK_HARMS: readonly [what: string, harm: (disk: SimulatedDisk) => void][] = [
  ["nothing", () => undefined],
  [
    "three bits of the source's sidecar",
    (disk) => [60, 81, 97].forEach((byte) => disk.flipBit(pathOf(disk, "source", "meta.json"), 8 * byte)),
  ],
  ["three bits of the fork's sidecar", (disk) => [60, 81, 97].forEach((byte) => disk.flipBit(pathOf(disk, "fork", "meta.json"), 8 * byte))],
];

/** A source and a fork in their own files, both of which the journal goes on with; another fork that only the journal has. */
async function killedWithForks(seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(seed);
  disk.scheduler.maxDelayTurns = 1;
  const first = await engineOn(disk);
  await forked(first, await created(first, "source", `source${BIG}`), "fork", 3000, "own");
  await first.close();
  const second = await engineOn(disk);
  const [source, fork] = [await second.load("source"), await second.load("fork")];
  assert.ok(source !== null && fork !== null);
  for (const stream of [source, fork]) assert.equal(await append(second, stream, "more"), "durable");
  await forked(second, source, "late", 5000, BIG);
  disk.crash("kill");
  return disk;
}

describe("a repair of forks that is ended at any point and done again", () => {
  for (const [index, [what, harm]] of FORK_HARMS.entries()) {
    for (const kind of ["kill", "power"] as const) {
      test(`after damage to ${what}, by ${kind}, keeps source and forks whole`, async () => {
        const shared = `source${BIG}`;
        const texts = { source: `${shared}more`, fork: `${shared.slice(0, 3000)}ownmore`, late: `${shared.slice(0, 5000)}${BIG}` };
        const measured = await killedWithForks(7000 + 1000 * index);
        harm(measured);
        const before = measured.events;
        await repair(measured);
        const total = measured.events - before;
        for (let point = 0; point < POINTS; point += 1) {
          const seed = 7000 + 1000 * index + point;
          const events = Math.ceil(((point + 1) / POINTS) * total);
          const disk = await killedWithForks(seed);
          harm(disk);
          await repairWithCrash(disk, events, kind);
          const storage = await engineOn(disk);
          for (const [name, text] of Object.entries(texts))
            assert.equal(await readOrRefused(storage, name), text, `${name} after ${events} events, seed ${seed}`);
          assert.equal((await storage.load("source"))?.forkCount, 2, `seed ${seed}`);
          await storage.close();
        }
      });
    }
  }
});
