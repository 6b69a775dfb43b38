import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findMarker, readMarker, replaceMarker } from "../../../../src/storage/file/directory/marker.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { upgradeDirectory } from "../../../../src/storage/file/upgrade/upgrade.js";
import type { UpgradeStep, UpgradeTarget } from "../../../../src/storage/file/upgrade/upgrade-steps.js";
import { areAs, CHANGED, FORMER, madeUpTarget } from "../../../helpers/made-up-format.js";
import { SimulatedDisk, type CrashKind } from "../../../helpers/simulated-disk.js";

const DIR = "/data";
const layout = new Layout(DIR);
const ID = Buffer.from("01234567");
const MARKER_1 = `{"format":1,"directory":"${ID.toString("hex")}"}\n`;

/** A directory of format 1, on a disk that has all of it. */
async function formerDirectory(seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(seed);
  const files = disk.mount();
  await files.makeDirectory(`${DIR}/damaged/b`);
  for (const [path, text] of Object.entries(FORMER)) disk.createFile(`${DIR}/${path}`).write(Buffer.from(text), 0, disk.nextStamp());
  await replaceMarker(files, layout, { format: 1, directoryId: ID, restores: [], upgradingTo: null });
  disk.settle();
  return disk;
}

async function upgrade(disk: SimulatedDisk, target: UpgradeTarget = madeUpTarget(), apply = true): Promise<string[]> {
  const lines: string[] = [];
  await upgradeDirectory({ files: disk.mount(), layout, target, apply, say: (line) => void lines.push(line) });
  return lines;
}

function textIn(disk: SimulatedDisk, below = ""): (path: string) => string | null {
  return (path) => disk.contentOf(`${DIR}/${below}${path}`)?.toString() ?? null;
}

function assertDone(disk: SimulatedDisk): void {
  assert.ok(areAs(CHANGED, textIn(disk)), "every file is changed");
  assert.ok(areAs(FORMER, textIn(disk, "before-format-2/files/")), "the files as they were are kept");
  assert.equal(textIn(disk)("before-format-2/streamdir.json"), MARKER_1);
}

describe("an upgrade", () => {
  test("says what it does, keeps what it changes, and ends with the new format", async () => {
    const disk = await formerDirectory(1);
    assert.deepEqual(await upgrade(disk), [
      "to do: format 1 to 2: give each file a first line; first 3 files, 9 bytes, are copied to /data/before-format-2",
      "done: the directory has format 2; the files as they were are in /data/before-format-2",
    ]);
    assertDone(disk);
    assert.deepEqual(await findMarker(disk.mount(), layout, 2), { format: 2, directoryId: ID, restores: [], upgradingTo: null });
    assert.deepEqual(await upgrade(disk), ["nothing to do: /data has format 2, that of this version"]);
  });

  test("that is only to be said changes nothing", async () => {
    const disk = await formerDirectory(2);
    assert.equal((await upgrade(disk, madeUpTarget(), false)).length, 1);
    assert.ok(areAs(FORMER, textIn(disk)));
    assert.equal(textIn(disk)("streamdir.json"), MARKER_1);
    assert.deepEqual(disk.namesIn(DIR), ["damaged", "streamdir.json"]);
  });

  test("of several steps takes them one by one", async () => {
    const disk = await formerDirectory(3);
    const [first] = madeUpTarget().steps;
    assert.ok(first !== undefined);
    const formats: (number | undefined)[] = [];
    const second: UpgradeStep = {
      ...first,
      from: 2,
      to: 3,
      run: async ({ files }) => void formats.push((await findMarker(files, layout, 3))?.format),
    };
    await upgrade(disk, { format: 3, steps: [first, second] });
    assert.deepEqual(formats, [2]);
    assert.equal((await findMarker(disk.mount(), layout, 3))?.format, 3);
    assert.deepEqual(disk.namesIn(DIR), ["before-format-2", "before-format-3", "damaged", "streamdir.json"]);
  });

  test("on a full disk changes nothing, and takes back its copies", async () => {
    const disk = await formerDirectory(4);
    disk.failAfter(1, "ENOSPC", (call) => call === "write");
    await assert.rejects(upgrade(disk), /ENOSPC/);
    assert.deepEqual(disk.namesIn(DIR), ["damaged", "streamdir.json"]);
    assert.ok(areAs(FORMER, textIn(disk)));
    await upgrade(disk);
    assertDone(disk);
  });

  const refused: readonly [what: string, marker: string | null, problem: RegExp][] = [
    [
      "that is newer",
      `{"format":3,"directory":"${ID.toString("hex")}"}\n`,
      /has format 3; this version knows format 2: use a newer version/,
    ],
    ["without a way", `{"format":0,"directory":"${ID.toString("hex")}"}\n`, /has format 0: no upgrade leads from there to 2/],
    ["that a newer version upgrades", MARKER_1.replace("}", ',"upgradingTo":3}'), /to format 3 was cut short; this version knows format 2/],
    ["that has no marker", null, /is not a data directory of streamdir/],
  ];
  for (const [what, marker, problem] of refused) {
    test(`refuses a directory ${what}`, async () => {
      const disk = await formerDirectory(5);
      if (marker === null) await disk.mount().unlink(layout.marker);
      else disk.fileAt(layout.marker).truncate(0, disk.nextStamp());
      if (marker !== null) disk.fileAt(layout.marker).write(Buffer.from(marker), 0, disk.nextStamp());
      await assert.rejects(upgrade(disk), (error: Error) => error.name === "DirectoryError" && problem.test(error.message));
      assert.ok(areAs(FORMER, textIn(disk)));
    });
  }
});

/** Ends an upgrade after `events` events; `false` when it was done before. */
async function cutShort(disk: SimulatedDisk, events: number, kind: CrashKind): Promise<boolean> {
  let crashed = false;
  const died = new Promise<void>((resolve) => disk.crashAfter(events, kind, () => resolve(void (crashed = true))));
  await Promise.race([upgrade(disk), died]);
  disk.calm();
  return crashed;
}

describe("an upgrade that is cut short anywhere", () => {
  for (const kind of ["kill", "power"] as const) {
    test(`leaves a directory of one of the two formats, or one that says so: ${kind}`, async () => {
      const seen = new Set<string>();
      for (let events = 1; ; events += 1) {
        const disk = await formerDirectory(events);
        const wasCut = await cutShort(disk, events, kind);
        const marker = await findMarker(disk.mount(), layout, 2);
        assert.ok(marker !== null, "the marker is there");
        seen.add(`${marker.format} ${marker.upgradingTo}`);
        if (marker.upgradingTo !== null) {
          await assert.rejects(
            readMarker(disk.mount(), layout),
            /an upgrade of \/data to format 2 was cut short: run streamdir upgrade again/,
          );
          assert.ok(areAs(FORMER, textIn(disk, "before-format-2/files/")), `after ${events} events`);
        } else assert.ok(areAs(marker.format === 1 ? FORMER : CHANGED, textIn(disk)), `after ${events} events`);
        await upgrade(disk);
        assertDone(disk);
        if (!wasCut) break;
      }
      assert.deepEqual([...seen].sort(), ["1 2", "1 null", "2 null"]);
    });
  }
});
