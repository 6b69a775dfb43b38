import assert from "node:assert/strict";
import { chownSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/server.js";
import { closedDirectory, NO_LOG } from "../helpers/closed-directory.js";
import { lacksUsers } from "../helpers/machine.js";
import { startStreamdir } from "../helpers/process.js";
import { fileIn, flipBit } from "../helpers/spoilt-files.js";
import { tempDir } from "../helpers/temp-dir.js";

test("repair has nothing to do in a sound directory, and says so", async (context) => {
  const dir = await closedDirectory();
  for (const args of [
    ["repair", dir],
    ["repair", dir, "--yes"],
  ]) {
    const { status, stdout, stderr } = await startStreamdir(context, args).ended;
    assert.deepEqual([status, stdout, stderr], [0, "nothing to repair\n", ""]);
  }
  assert.ok(!existsSync(join(dir, "lock")));
});

test("repair says what it would do, changes nothing without --yes, does it with --yes, and is then done", async (context) => {
  const dir = await closedDirectory();
  const sidecar = fileIn(dir, "meta.json");
  const segment = fileIn(dir, ".seg");
  const sound = readFileSync(sidecar);
  flipBit(sidecar, 50);
  const damaged = readFileSync(sidecar);
  const what = `stream "a/b": ${sidecar}: put byte 50 right, the only one whose change makes the checksum match; the damaged file is kept`;
  const plan = await startStreamdir(context, ["repair", dir]).ended;
  assert.deepEqual([plan.status, plan.stdout], [1, `to do: ${what}\n1 to do with --yes, nothing is left\n`]);
  assert.deepEqual(readFileSync(sidecar), damaged);
  const done = await startStreamdir(context, ["repair", dir, "--yes"]).ended;
  assert.deepEqual([done.status, done.stdout], [0, `done: ${what}\n1 done, nothing is left\n`]);
  assert.deepEqual(readFileSync(sidecar), sound);
  assert.equal((await startStreamdir(context, ["verify", dir]).ended).status, 0);

  rmSync(segment);
  const left = await startStreamdir(context, ["repair", dir, "--yes", "--json"]).ended;
  assert.equal(left.status, 1);
  const lines = left.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines[0], {
    kind: "left",
    stream: "a/b",
    file: segment,
    what: "lost until it is put back from a copy: it is missing: positions 0 to 5 of the stream",
  });
  assert.deepEqual(lines.at(-1), { done: 1, toDo: 0, left: 1 });
});

test("repair refuses a directory that a server has open, one of another host without --force-unlock, and one that is none of ours", async (context) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: NO_LOG });
  for (const args of [
    ["repair", dir],
    ["repair", dir, "--yes", "--force-unlock"],
  ]) {
    const busy = await startStreamdir(context, args).ended;
    assert.deepEqual([busy.status, busy.stdout], [1, ""]);
    assert.match(busy.stderr, new RegExp(`^streamdir: the directory is in use by process ${process.pid} on .*\n$`));
  }
  await server.close();
  writeFileSync(join(dir, "lock"), JSON.stringify({ pid: 1, host: "elsewhere", startedAt: null }));
  assert.match((await startStreamdir(context, ["repair", dir, "--yes"]).ended).stderr, /in use by process 1 on elsewhere .*--force-unlock/);
  const forced = await startStreamdir(context, ["repair", dir, "--yes", "--force-unlock"]).ended;
  assert.equal(forced.status, 0);
  assert.match(forced.stderr, /warn .*taken away.*host=elsewhere/);
  assert.ok(!existsSync(join(dir, "lock")));
  const foreign = await startStreamdir(context, ["repair", tempDir(), "--yes"]).ended;
  assert.equal(foreign.status, 1);
  assert.match(foreign.stderr, /is not a data directory of streamdir/);
});

test("repair changes nothing in another user's directory, which may be looked at", { skip: lacksUsers }, async (context) => {
  const dir = await closedDirectory();
  flipBit(fileIn(dir, "meta.json"), 50);
  chownSync(join(dir, "streamdir.json"), 65534, 65534);
  const { status, stdout, stderr } = await startStreamdir(context, ["repair", dir, "--yes"]).ended;
  const expected = `streamdir: ${dir} is of the user 65534, and this is the user 0: run it as its owner\n`;
  assert.deepEqual([status, stdout, stderr], [1, "", expected]);
  const files = readdirSync(dir, { recursive: true });
  assert.match((await startStreamdir(context, ["repair", dir]).ended).stdout, /1 to do with --yes, nothing is left\n$/);
  assert.match((await startStreamdir(context, ["verify", dir]).ended).stdout, /1 finding in 1 streams/);
  assert.deepEqual(readdirSync(dir, { recursive: true }), files, "neither writes anything");
});
