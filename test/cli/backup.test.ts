import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { EventEmitter } from "node:events";
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { backup as runBackup } from "../../src/cli/backup.js";
import { defaultSettings } from "../../src/options.js";
import { createServer } from "../../src/server.js";
import { closedDirectory, NO_LOG } from "../helpers/closed-directory.js";
import { AS_NOBODY, lacksMounts, lacksUsers, smallDisk } from "../helpers/machine.js";
import { startNode, startStreamdir, type Ended, type TestScope } from "../helpers/process.js";
import { fileIn, flipBit } from "../helpers/spoilt-files.js";
import { tempDir } from "../helpers/temp-dir.js";

const PROCESS = fileURLToPath(new URL("../faults/backup-process.ts", import.meta.url));

function backup(scope: TestScope, ...args: string[]): Promise<Ended> {
  return startStreamdir(scope, ["backup", ...args]).ended;
}

test("backup copies the directory of a running server, and a server starts on the copy", async (t) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, log: NO_LOG });
  await fetch(`${server.url}a/b`, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
  const dest = join(tempDir(), "backup");
  const { status, stdout, stderr } = await backup(t, dir, dest);
  await server.close();
  assert.equal(stderr, "");
  assert.match(
    stdout,
    /^0 streams with files, 0 of them new or changed, 0 removed; 0 bytes copied, 0 linked, 0 there already, \d+ of the journal, which has the rest\n$/,
  );
  assert.equal(status, 0);
  const verified = await startStreamdir(t, ["verify", dest]).ended;
  assert.match(verified.stdout, /^nothing wrong in 1 streams, 1 journal files, \d+ bytes\n$/);
  const copy = await createServer({ dir: dest, port: 0, log: NO_LOG });
  assert.equal(await (await fetch(`${copy.url}a/b`)).text(), "hello");
  await copy.close();
  const again = await backup(t, dir, dest);
  assert.equal(again.status, 1);
  assert.match(
    again.stderr,
    /^streamdir: .* is no backup: a server has had it open, or it never was one; name a directory that is new or empty\n$/,
  );
});

test("who may not read a directory may not read its backup", async (t) => {
  const dir = await closedDirectory();
  for (const [mode, others] of [
    [0o700, 0],
    [0o750, 0o050],
  ] as const) {
    chmodSync(dir, mode);
    const dest = join(tempDir(), "backup");
    assert.equal((await backup(t, dir, dest)).status, 0);
    const places = [dest, ...readdirSync(dest, { recursive: true }).map((name) => join(dest, String(name)))];
    assert.ok(places.some((path) => path.endsWith(".seg")));
    for (const path of places) assert.equal(statSync(path).mode & 0o077 & ~others, 0, path);
    const umask = process.umask();
    assert.equal(statSync(dest).mode & 0o077, others & ~umask);
  }
});

test("backup of a directory that its user may not see says so in one line", { skip: lacksUsers }, async (t) => {
  const shut = tempDir();
  chmodSync(shut, 0o700);
  const { status, stderr } = await startStreamdir(t, ["backup", join(shut, "streams"), join(shut, "b")], { under: AS_NOBODY }).ended;
  assert.equal(status, 1);
  assert.match(stderr, /^streamdir: [^\n]*permission denied\n$/);
});

test("backup copies a directory that no server has open, and names what is damaged in it", async (t) => {
  const dir = await closedDirectory();
  const segment = fileIn(dir, ".seg");
  const dest = join(tempDir(), "backup");
  const sound = await backup(t, dir, dest);
  assert.equal(
    sound.stdout,
    "1 streams with files, 1 of them new or changed, 0 removed; 5 bytes copied, 0 linked, 0 there already, 512 of the journal, which has the rest\n",
  );
  flipBit(segment, 2);
  rmSync(join(dest, "streams"), { recursive: true });
  const damaged = await backup(t, dir, dest);
  assert.equal(damaged.status, 1);
  assert.equal(damaged.stderr, `stream "a/b": ${segment}: it does not match its checksum\n`);
  assert.match(damaged.stdout, /; 1 damaged in the directory, and so perhaps in the backup\n$/);
});

test("backup refuses what it can't do with a line that says why", async (t) => {
  const dir = await closedDirectory();
  const full = tempDir();
  writeFileSync(join(full, "letters.txt"), "dear");
  for (const [args, status, line] of [
    [[], 64, /^streamdir: backup needs two directories: DIR DEST\n$/],
    [[dir], 64, /^streamdir: backup needs two directories: DIR DEST\n$/],
    [[dir, ""], 64, /^streamdir: the directory must not be empty\n$/],
    [[dir, join(full, "a"), join(full, "b")], 64, /^streamdir: backup needs two directories: DIR DEST, and no third, ".*"\n$/],
    [[dir, full], 1, /^streamdir: .* is no backup: it is not empty; name a directory that is new or empty\n$/],
    [[dir, join(dir, "backup")], 1, /^streamdir: the backup .* can't be .* or lie in it\n$/],
    [[join(full, "nothing"), join(full, "a")], 1, /^streamdir: .* is not a data directory of streamdir: .* is missing\n$/],
  ] as const) {
    const ended = await backup(t, ...args);
    assert.equal(ended.status, status, ended.stderr);
    assert.match(ended.stderr, line);
  }
  assert.deepEqual(readdirSync(full), ["letters.txt"]);
});

const MEMORY = "/dev/shm";
const isOther = existsSync(MEMORY) && statSync(MEMORY).dev !== statSync(tempDir()).dev;

test("backup copies to another file system what it could have linked", { skip: !isOther && "there is none here" }, async (t) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, segmentBytes: 4096, log: NO_LOG });
  const headers = { "Content-Type": "text/plain" };
  await fetch(`${server.url}a`, { method: "PUT", headers, body: "x".repeat(5000) });
  await fetch(`${server.url}a`, { method: "POST", headers, body: "y".repeat(3000) });
  await server.close();
  const place = mkdtempSync(join(MEMORY, "streamdir-test-"));
  t.after(() => rmSync(place, { recursive: true }));
  const { status, stdout } = await backup(t, dir, join(place, "backup"));
  assert.equal(status, 0);
  assert.match(stdout, /; 8000 bytes copied, 0 linked, 0 there already,/);
  const local = await backup(t, dir, join(tempDir(), "backup"));
  assert.match(local.stdout, /; 3000 bytes copied, 5000 linked, 0 there already,/);
});

test("backup copies a directory whose file system is read-only, and names the place that is", { skip: lacksMounts }, async (t) => {
  const disk = smallDisk(t, 16);
  const dir = join(disk, "d");
  cpSync(await closedDirectory(), dir, { recursive: true });
  execFileSync("mount", ["-o", "remount,ro", disk]);
  const dest = join(tempDir(), "backup");
  const made = await backup(t, dir, dest);
  assert.deepEqual([made.status, made.stderr], [0, ""]);
  assert.match((await startStreamdir(t, ["verify", dest]).ended).stdout, /^nothing wrong in 1 streams/);
  const refused = await backup(t, dest, join(disk, "backup"));
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /^streamdir: the directory .*\/disk\/backup can't be used: .*the file system is read-only\n$/);
});

test("backup that a signal ends gives the locks back, and has that signal's status", async () => {
  const dir = await closedDirectory();
  const dest = join(tempDir(), "backup");
  const lines: string[] = [];
  const output = { write: (text: string) => void lines.push(text) };
  const surroundings = Object.assign(new EventEmitter(), { env: {}, stdout: output, stderr: output, exit: () => assert.fail() });
  const invocation = { dir, second: dest, settings: defaultSettings(), switches: new Set<string>(), version: "" };
  const ended = runBackup(invocation, surroundings);
  surroundings.emit("SIGTERM", "SIGTERM");
  assert.equal(await ended, 143);
  assert.deepEqual(lines, ["streamdir: the backup was ended by SIGTERM: run it again\n"]);
  for (const root of [dir, dest])
    assert.deepEqual(
      readdirSync(root).filter((name) => name.startsWith("lock")),
      [],
    );
  assert.deepEqual(surroundings.eventNames(), []);
});

test("a directory's user takes it over from a backup by root that was killed", { skip: lacksUsers }, async (t) => {
  const dir = await closedDirectory();
  for (const path of [dir, ...readdirSync(dir, { recursive: true }).map((name) => join(dir, String(name)))]) chownSync(path, 65534, 65534);
  chmodSync(dir, 0o700);
  chmodSync(dirname(dir), 0o755);
  const killed = await startNode(t, ["--import", import.meta.resolve("tsx"), PROCESS, dir, join(tempDir(), "backup"), "120"]).ended;
  assert.equal(killed.signal, "SIGKILL");
  assert.ok(existsSync(join(dir, "lock")));
  const { stdout, stderr } = await startStreamdir(t, ["verify", dir], { under: AS_NOBODY }).ended;
  assert.match(`${stdout}${stderr}`, /^nothing wrong in/);
  const place = tempDir();
  chownSync(place, 65534, 65534);
  const again = await startStreamdir(t, ["backup", dir, join(place, "backup")], { under: AS_NOBODY }).ended;
  assert.deepEqual([again.status, again.stderr], [0, ""]);
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.startsWith("lock")),
    [],
  );
});
