import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { Destination, type DestinationOptions } from "../../../../src/storage/file/backup/destination.js";
import { keptLog, openEngine } from "../../../helpers/engine.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const ID = Buffer.from("0123456789abcdef", "hex");

function optionsFor(root: string, directoryId = ID): DestinationOptions {
  return { files: systemFiles(false), from: new Layout(root), directoryId, force: false, log: keptLog().log };
}

/** A directory to copy from, and a place to copy to. */
function places(): { readonly from: string; readonly to: string } {
  const root = tempDir();
  mkdirSync(join(root, "from"));
  return { from: join(root, "from"), to: join(root, "to") };
}

describe("a destination", () => {
  test("is no data directory from its first change on until it is complete", async () => {
    const { from, to } = places();
    const destination = await Destination.open(to, optionsFor(from));
    await destination.begin();
    await destination.complete(new Date(0));
    assert.equal(readFileSync(join(to, "streamdir.json"), "utf8"), '{"format":1,"directory":"0123456789abcdef"}\n');
    const mark = '{"format":1,"directory":"0123456789abcdef","asOf":"1970-01-01T00:00:00.000Z"}\n';
    assert.equal(readFileSync(join(to, "backup.json"), "utf8"), mark);
    await destination.begin();
    assert.equal(existsSync(join(to, "streamdir.json")), false);
    assert.match(readFileSync(join(to, "backup.json"), "utf8"), /"asOf":null/);
    await destination.close();
    assert.deepEqual(readdirSync(to).sort(), ["backup.json", "journal", "streams", "trash"]);
  });

  test("is taken again, whether or not it is complete", async () => {
    const { from, to } = places();
    for (let time = 1; time <= 3; time += 1) {
      const destination = await Destination.open(to, optionsFor(from));
      await destination.begin();
      if (time === 2) await destination.complete(new Date(0));
      await destination.close();
    }
  });

  test("is not taken while another backup has it", async () => {
    const { from, to } = places();
    const destination = await Destination.open(to, optionsFor(from));
    await assert.rejects(Destination.open(to, optionsFor(from)), /is in use by process/);
    await destination.close();
  });

  test("is not taken where it has something else, and nothing of that is changed", async () => {
    const { from, to } = places();
    mkdirSync(to);
    writeFileSync(join(to, "letters.txt"), "dear");
    await assert.rejects(Destination.open(to, optionsFor(from)), {
      message: `${to} is no backup: it is not empty; name a directory that is new or empty`,
    });
    assert.deepEqual(readdirSync(to), ["letters.txt"]);
  });

  test("may be a volume of its own, with what the system has put there", async () => {
    const { from, to } = places();
    mkdirSync(join(to, "lost+found"), { recursive: true });
    const destination = await Destination.open(to, optionsFor(from));
    await destination.begin();
    await destination.close();
    await (await Destination.open(to, optionsFor(from))).close();
  });

  test("is not taken where it is a backup of another directory", async () => {
    const { from, to } = places();
    const destination = await Destination.open(to, optionsFor(from));
    await destination.begin();
    await destination.close();
    await assert.rejects(Destination.open(to, optionsFor(from, Buffer.alloc(8))), /is a backup of another directory than/);
  });

  test("is no backup any more once a server has had it open", async () => {
    const { from } = places();
    const engine = await openEngine();
    await engine.storage.close();
    writeFileSync(join(engine.dir, "backup.json"), '{"format":1,"directory":"0123456789abcdef","asOf":null}\n');
    const served = await openEngine({ dir: engine.dir });
    await served.storage.close();
    await assert.rejects(Destination.open(engine.dir, optionsFor(from)), /is no backup: a server has had it open, or it never was one/);
  });

  test("is neither the directory itself, nor in it, nor above it, whatever links say", async () => {
    const { from } = places();
    mkdirSync(join(from, "streams"));
    const link = join(tempDir(), "link");
    symlinkSync(join(from, "streams"), link);
    for (const to of [from, join(from, "deep", "er"), link, join(link, "new")])
      await assert.rejects(Destination.open(to, optionsFor(from)), /can't be .* or lie in it/, to);
    await assert.rejects(Destination.open(join(from, ".."), optionsFor(from)), /can't be above/);
    assert.deepEqual(readdirSync(from), ["streams"]);
  });

  test("is not taken where there is a file in its place", async () => {
    const { from, to } = places();
    writeFileSync(to, "");
    await assert.rejects(Destination.open(to, optionsFor(from)), { message: `the directory ${to} can't be used: it is not a directory` });
  });
});
