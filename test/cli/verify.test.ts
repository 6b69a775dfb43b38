import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/server.js";
import { closedDirectory, NO_LOG } from "../helpers/closed-directory.js";
import { startStreamdir } from "../helpers/process.js";
import { fileIn, flipBit } from "../helpers/spoilt-files.js";
import { tempDir } from "../helpers/temp-dir.js";

test("verify says that a sound directory is sound", async (context) => {
  const dir = await closedDirectory();
  const ended = await startStreamdir(context, ["verify", dir]).ended;
  assert.equal(ended.status, 0, ended.stderr);
  assert.match(ended.stdout, /^nothing wrong in 1 streams, 1 journal files, \d+ bytes\n$/);
  assert.equal(ended.stderr, "");
});

test("verify names the stream and the file of a flipped bit and ends with 1", async (context) => {
  const dir = await closedDirectory();
  const segment = fileIn(dir, ".seg");
  flipBit(segment, 2);
  const ended = await startStreamdir(context, ["verify", dir]).ended;
  assert.equal(ended.status, 1);
  const [finding, summary] = ended.stdout.split("\n");
  assert.equal(finding, `stream "a/b": ${segment}: its first 5 bytes do not match their checksum: positions 0 to 5 of the stream`);
  assert.match(summary ?? "", /^1 finding in 1 streams/);

  const json = await startStreamdir(context, ["verify", dir, "--json"]).ended;
  assert.deepEqual(JSON.parse(json.stdout.split("\n")[0] ?? ""), {
    stream: "a/b",
    file: segment,
    offset: null,
    problem: "its first 5 bytes do not match their checksum: positions 0 to 5 of the stream",
  });
});

test("verify names the file when the directory's marker is itself a directory", async (context) => {
  const dir = await closedDirectory();
  const marker = join(dir, "streamdir.json");
  rmSync(marker);
  mkdirSync(marker);
  for (const verb of [["verify"], ["repair"], ["serve"]]) {
    const ended = await startStreamdir(context, [...verb, dir]).ended;
    assert.equal(ended.status, 1);
    assert.equal(ended.stderr, `streamdir: ${marker} can't be read: it is a directory\n`);
  }
});

test("verify refuses a directory that a server has open, and one that is none of ours", async (context) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: NO_LOG });
  const busy = await startStreamdir(context, ["verify", dir]).ended;
  await server.close();
  assert.equal(busy.status, 1);
  const says = `^streamdir: the directory is in use by process ${process.pid} on .*: it runs; stop it first, or verify what .* backup .*\n$`;
  assert.match(busy.stderr, new RegExp(says));
  const foreign = await startStreamdir(context, ["verify", tempDir()]).ended;
  assert.equal(foreign.status, 1);
  assert.match(foreign.stderr, /is not a data directory of streamdir/);
});
