import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { StreamDirectories } from "../../../src/storage/file/stream-directories.js";
import { fileRooms } from "../../helpers/file-rooms.js";
import { diskError } from "../../helpers/watched-files.js";

describe("the directories of streams", () => {
  test("are known from one listing of their shard", async () => {
    const { files, layout } = fileRooms();
    const there = layout.streamDirectory("there");
    mkdirSync(there, { recursive: true });
    const directories = new StreamDirectories({ files, layout });
    assert.deepEqual(await Promise.all([directories.mayHave(there), directories.mayHave(there), directories.mayHave(`${there}2`)]), [true, true, false]);
    assert.equal(files.count("list", /./), 1);
  });

  test("are not there where their shard is not", async () => {
    const { files, layout } = fileRooms();
    assert.equal(await new StreamDirectories({ files, layout }).mayHave(layout.streamDirectory("s")), false);
  });

  test("may be there where their shard can't be looked at; a disk that fails is no answer", async () => {
    const { files, layout } = fileRooms();
    const directory = layout.streamDirectory("s");
    rmSync(layout.shard(directory), { recursive: true, force: true });
    writeFileSync(layout.shard(directory), "not a directory");
    assert.equal(await new StreamDirectories({ files, layout }).mayHave(directory), true);
    files.gate = ({ kind }) => (kind === "list" ? diskError("EIO") : undefined);
    await assert.rejects(new StreamDirectories({ files, layout }).mayHave(directory), { code: "EIO" });
  });
});
