import assert from "node:assert/strict";
import http from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { systemFiles } from "../../src/storage/file/disk/files.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { readSidecarIn } from "../../src/storage/file/directory/catalog.js";
import { filesWith, makeBackup, restored } from "../helpers/backup.js";
import { append, bytesOf, created, openFor } from "../helpers/engine.js";
import { startNode, type Ended, type TestScope } from "../helpers/process.js";
import { Random } from "../helpers/random.js";
import { RealServer } from "../helpers/real-server.js";
import { findings, textOf } from "../helpers/repaired-directory.js";
import { StreamLoad } from "../helpers/stream-load.js";
import { tempDir } from "../helpers/temp-dir.js";

const SCRIPT = fileURLToPath(new URL("./backup-process.ts", import.meta.url));

/** How many sidecars a backup copies before its server is killed. */
const COPIED = 15;
/** Who changes streams meanwhile, and how many names each has. */
const CLIENTS = 4;
const NAMES = 10;

/** How many streams of `load/` a backup copies one by one: the journal has all of the others. */
async function copiedOf(dir: string, load: string): Promise<number> {
  const layout = new Layout(dir);
  const names = Array.from({ length: CLIENTS * NAMES }, (_, at) => `${load}/c${at % CLIENTS}/s${Math.floor(at / CLIENTS)}`);
  const read = await Promise.all(names.map((name) => readSidecarIn(systemFiles(false), layout.streamDirectory(name))));
  return read.filter((each) => each?.kind === "sound" && !each.sidecar.claimed).length;
}

/** Runs a backup that is killed at one of its calls to the file system. */
function killedAt(scope: TestScope, dir: string, dest: string, call: number): Promise<Ended> {
  return startNode(scope, ["--import", import.meta.resolve("tsx"), SCRIPT, dir, dest, String(call)]).ended;
}

/** Whether a backup is complete; fails where it is neither that nor told to be incomplete. */
async function isComplete(dest: string): Promise<boolean> {
  try {
    assert.deepEqual(await findings(dest), []);
    return true;
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.match(error.message, /is a backup that is not complete: run streamdir backup again$|streamdir.json is missing$/);
    return false;
  }
}

test("a backup that is killed anywhere is complete or says that it is not, and the next goes on from it", async (t) => {
  const { dir, storage } = await openFor(t);
  const text = `${bytesOf(5000).toString()}${bytesOf(5000, 1).toString()}end`;
  const names = Array.from({ length: 8 }, (_, index) => `s${index}`);
  for (const name of names) {
    const stream = await created(storage, name, bytesOf(5000));
    await append(storage, stream, bytesOf(5000, 1));
    await append(storage, stream, "end");
  }
  const { stdout } = await killedAt(t, dir, join(tempDir(), "whole"), 0);
  const calls = Number(/^\d+/.exec(stdout)?.[0]);
  assert.ok(calls > 100, stdout);
  const completed: boolean[] = [];
  for (const part of [0.05, 0.3, 0.6, 0.9, 0.98]) {
    const dest = join(tempDir(), "backup");
    const { signal } = await killedAt(t, dir, dest, Math.ceil(calls * part));
    assert.equal(signal, "SIGKILL");
    completed.push(await isComplete(dest));
    // The server keeps nothing for those that were killed, nor does a lock.
    await makeBackup(dir, dest);
    const copy = await restored(dest);
    for (const name of names) assert.equal(await textOf(copy, name), text);
    await copy.storage.close();
  }
  assert.deepEqual(completed.slice(0, 4), [false, false, false, false]);
});

test("a backup whose server is killed ends; the next has all that was acknowledged", async (t) => {
  const server = new RealServer(t, ["--segment-bytes", "8KiB", "--journal-bytes", "512KiB", "--journal-bypass-bytes", "8KiB"]);
  await server.start();
  server.agent = new http.Agent({ keepAlive: true });
  t.after(async () => server.agent?.destroy());
  const dest = join(tempDir(), "backup");
  const random = new Random(2);
  for (const [round, isStarted] of [true, false].entries()) {
    const load = new StreamLoad(server, random, `round${round}`);
    load.start(CLIENTS, NAMES);
    await load.more(300);
    // The server writes sidecars when it gets to it. Some of these streams are deleted while the backup is made.
    while ((await copiedOf(server.dir, `round${round}`)) < 2 * COPIED) await load.more(20);
    let sidecars = 0;
    const files = filesWith(async (call, path) => {
      if (call !== "rename" || !path.endsWith("meta.json.new") || (sidecars += 1) !== COPIED) return;
      server.process.kill("SIGKILL");
      await server.process.ended;
    });
    await assert.rejects(makeBackup(server.dir, dest, { files }), /its server ended meanwhile: run the backup again$/);
    await load.stop();
    assert.ok(load.ledger().size > 0);
    assert.equal(await isComplete(dest), false);
    if (isStarted) await server.start();
    await makeBackup(server.dir, dest);
    const copy = await restored(dest);
    await copy.storage.close();
    const other = new RealServer(t, [], copy.dir);
    await other.start();
    await load.ledger().assertIn(other);
    await other.stop();
  }
});
