import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { crc32 } from "../../src/storage/file/format/crc32.js";
import { makeBackup, restored } from "../helpers/backup.js";
import { append, bytesOf, copyOf, created, forked, loaded, openEngine, remove, reopen } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { textOf } from "../helpers/repaired-directory.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import { tempDir } from "../helpers/temp-dir.js";
import { copyOut, SIMULATED, TwoDisks } from "../helpers/two-disks.js";

const SEEDS = 12;
const DEST = `${SIMULATED}/backup`;

/** A directory at a moment, which no server has open, and what its streams say. */
interface Moment {
  readonly dir: string;
  readonly streams: Readonly<Record<string, string | null>>;
}

/** The same directory at two moments: streams of several segments, of the journal alone, forks; made, appended to and deleted. */
async function twoMoments(): Promise<readonly [Moment, Moment]> {
  let engine = await openEngine();
  const texts = [1, 2, 3].map((seed) => bytesOf(5000, seed).toString());
  const long = await created(engine.storage, "long", texts[0] ?? "");
  await append(engine.storage, long, texts[1] ?? "");
  const small = await created(engine.storage, "small", "hello");
  await forked(engine.storage, small, "fork", 3, "p!");
  await created(engine.storage, "gone", bytesOf(9000, 7));
  await engine.storage.close();
  const first = {
    dir: copyOf(engine.dir),
    streams: {
      long: briefly(texts.slice(0, 2).join("")),
      small: "hello",
      fork: "help!",
      gone: briefly(bytesOf(9000, 7).toString()),
      new: null,
    },
  };
  engine = await reopen(engine);
  await append(engine.storage, await loaded(engine.storage, "long"), texts[2] ?? "");
  await append(engine.storage, await loaded(engine.storage, "small"), " there");
  await remove(engine.storage, await loaded(engine.storage, "gone"));
  await created(engine.storage, "gone", "anew");
  await created(engine.storage, "new", bytesOf(6000, 9));
  await engine.storage.close();
  const streams = {
    long: briefly(texts.join("")),
    small: "hello there",
    fork: "help!",
    gone: "anew",
    new: briefly(bytesOf(6000, 9).toString()),
  };
  return [first, { dir: copyOf(engine.dir), streams }];
}

/** A long text by its length and checksum. */
function briefly(text: string): string {
  return text.length < 100 ? text : `${text.length} characters with the CRC ${crc32(Buffer.from(text))}`;
}

/** What a backup says, in which `verify` has found nothing; `null` where it is refused as not complete. */
async function saidBy(disk: SimulatedDisk): Promise<Record<string, string | null> | null> {
  if (disk.contentOf(`${DEST}/streamdir.json`) === null) return null;
  const copy = join(tempDir(), "backup");
  copyOut(disk, DEST, copy);
  const engine = await restored(copy);
  const said: Record<string, string | null> = {};
  for (const name of ["long", "small", "fork", "gone", "new"])
    said[name] = (await engine.storage.load(name)) === null ? null : briefly(await textOf(engine, name));
  await engine.storage.close();
  return said;
}

/** How many events of its disk a backup of each moment takes, one after the other. */
async function lengthsOf(moments: readonly Moment[]): Promise<number[]> {
  const disk = quickDisk(0);
  const lengths: number[] = [];
  for (const { dir } of moments) {
    const before = disk.events;
    await makeBackup(copyOf(dir), DEST, { files: new TwoDisks(disk) });
    lengths.push(disk.events - before);
  }
  return lengths;
}

function quickDisk(seed: number): SimulatedDisk {
  const disk = new SimulatedDisk(seed);
  disk.scheduler.maxDelayTurns = 0;
  // It is mounted there.
  disk.makeDirectory(SIMULATED);
  disk.settle();
  return disk;
}

test("a backup whose power goes at any moment is refused or complete, and is complete once it is made again", async () => {
  const moments = await twoMoments();
  const lengths = await lengthsOf(moments);
  const random = new Random(20);
  const seen = { refused: 0, before: 0, after: 0 };
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const disk = quickDisk(seed);
    let before: Moment["streams"] | null = null;
    for (const [at, { dir, streams }] of moments.entries()) {
      for (let cut = 0; cut < 2; cut += 1) {
        const files = new TwoDisks(disk);
        const length = lengths[at] ?? 1;
        // Every other seed also in the last steps, where it becomes complete.
        files.cutAfter(random.integer(cut === 0 && seed % 2 === 0 ? Math.max(1, length - 5) : 1, length));
        const hasEnded = await makeBackup(copyOf(dir), DEST, { files }).then(
          () => true,
          (error: unknown) => !/the power went/.test(String(error)) && Promise.reject(error),
        );
        disk.crash("power");
        const said = await saidBy(disk);
        const kind = said === null ? "refused" : isDeepStrictEqual(said, streams) ? "after" : "before";
        if (kind === "before") assert.deepEqual(said, before, `seed ${seed}`);
        if (hasEnded) assert.equal(kind, "after", `seed ${seed}`);
        seen[kind] += 1;
      }
      await makeBackup(copyOf(dir), DEST, { files: new TwoDisks(disk) });
      disk.crash("power");
      assert.deepEqual(await saidBy(disk), streams, `seed ${seed}: what was complete is there`);
      before = streams;
    }
  }
  assert.ok(seen.refused > 0 && seen.after > 0, JSON.stringify(seen));
});
