import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { StreamDirectories } from "../../../../src/storage/file/directory/stream-directories.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { diskError } from "../../../helpers/watched-files.js";

describe("the directories of streams", () => {
  test("are known from one listing of their shard", async () => {
    const { files, layout } = fileRooms();
    const there = layout.streamDirectory("there");
    mkdirSync(there, { recursive: true });
    const directories = new StreamDirectories({ files });
    assert.deepEqual(await Promise.all([directories.mayHave(there), directories.mayHave(there), directories.mayHave(`${there}2`)]), [
      true,
      true,
      false,
    ]);
    assert.equal(files.count("list", /./), 1);
  });

  test("are known not to be there once their shard was listed, and not before or where it can't be", async () => {
    const { files, layout } = fileRooms();
    const [there, nowhere] = [layout.streamDirectory("there"), `${layout.streamDirectory("there")}2`];
    mkdirSync(there, { recursive: true });
    const directories = new StreamDirectories({ files });
    assert.equal(directories.lacks(nowhere), false);
    assert.equal(files.count("list", /./), 0);
    await directories.mayHave(there);
    assert.deepEqual([directories.lacks(nowhere), directories.lacks(there)], [true, false]);
    const blocked = layout.streamDirectory("blocked");
    writeFileSync(layout.shard(blocked), "not a directory");
    await directories.mayHave(blocked);
    assert.equal(directories.lacks(blocked), false);
  });

  test("are not there where their shard is not", async () => {
    const { files, layout } = fileRooms();
    assert.equal(await new StreamDirectories({ files }).mayHave(layout.streamDirectory("s")), false);
  });

  test("may be there where their shard can't be looked at; a disk that fails is no answer", async () => {
    const { files, layout } = fileRooms();
    const directory = layout.streamDirectory("s");
    rmSync(layout.shard(directory), { recursive: true, force: true });
    writeFileSync(layout.shard(directory), "not a directory");
    assert.equal(await new StreamDirectories({ files }).mayHave(directory), true);
    files.gate = ({ kind }) => (kind === "list" ? diskError("EIO") : undefined);
    await assert.rejects(async () => new StreamDirectories({ files }).mayHave(directory), { code: "EIO" });
  });

  test("are asked for again once a disk that failed answers", async () => {
    const { files, layout } = fileRooms();
    const directories = new StreamDirectories({ files });
    files.gate = ({ kind }) => (kind === "list" ? diskError("EIO") : undefined);
    await assert.rejects(async () => directories.mayHave(layout.streamDirectory("s")), { code: "EIO" });
    files.gate = null;
    assert.equal(await directories.mayHave(layout.streamDirectory("s")), false);
  });

  test("are there once they are added, also while their shard is listed, and no promise is made for that", async () => {
    const { files, layout } = fileRooms();
    const directories = new StreamDirectories({ files });
    const [during, after] = [layout.streamDirectory("s"), `${layout.streamDirectory("s")}2`];
    const asked = directories.mayHave(during);
    directories.add(during);
    assert.deepEqual([await asked, directories.mayHave(after)], [true, false]);
    directories.add(after);
    assert.equal(directories.mayHave(after), true);
  });

  test("are listed again when many were added", async () => {
    const { files, layout } = fileRooms();
    const shard = layout.shard(layout.streamDirectory("s"));
    mkdirSync(`${shard}/there`, { recursive: true });
    const directories = new StreamDirectories({ files });
    await directories.mayHave(`${shard}/there`);
    for (let index = 0; index < 200; index += 1) directories.add(`${shard}/gone-${index}`);
    assert.deepEqual([await directories.mayHave(`${shard}/there`), await directories.mayHave(`${shard}/gone-1`)], [true, false]);
    assert.equal(files.count("list", /./), 2);
  });
});
