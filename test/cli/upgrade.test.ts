import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseCommand } from "../../src/cli/config.js";
import { upgrade } from "../../src/cli/upgrade.js";
import { createServer } from "../../src/server.js";
import { closedDirectory, NO_LOG } from "../helpers/closed-directory.js";
import { AS_NOBODY, lacksUsers } from "../helpers/machine.js";
import { areAs, CHANGED, FORMER, madeUpTarget } from "../helpers/made-up-format.js";
import { startNode, startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const HALTING = fileURLToPath(new URL("../helpers/halting-upgrade.ts", import.meta.url));

/** A sound directory with a stream, and the files that the made-up step changes. */
async function formerDirectory(): Promise<string> {
  const dir = await closedDirectory();
  mkdirSync(join(dir, "damaged/b"), { recursive: true });
  for (const [path, text] of Object.entries(FORMER)) writeFileSync(join(dir, path), text);
  return dir;
}

function textIn(dir: string): (path: string) => string | null {
  return (path) => (existsSync(join(dir, path)) ? readFileSync(join(dir, path), "utf8") : null);
}

/** Upgrades to the made-up format, in this process. */
async function upgradeTo2(dir: string): Promise<{ status: number; stdout: string; stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const command = parseCommand([dir], {}, [{ name: "upgrade", summary: "", run: upgrade }]);
  assert.ok(command.kind === "run");
  const surroundings = {
    env: {},
    stdout: { write: (text: string | Buffer) => void (said.stdout += String(text)) },
    stderr: { write: (text: string | Buffer) => void (said.stderr += String(text)) },
    on: () => undefined,
    off: () => undefined,
    exit: () => undefined,
  };
  return { status: await upgrade({ ...command, version: "" }, surroundings, madeUpTarget()), ...said };
}

test("upgrade has nothing to do in a directory of this version, and says so", async (t) => {
  const dir = await closedDirectory();
  for (const flags of [["--dry-run"], []]) {
    const { status, stdout, stderr } = await startStreamdir(t, ["upgrade", dir, ...flags]).ended;
    assert.deepEqual([status, stdout, stderr], [0, `nothing to do: ${dir} has format 1, that of this version\n`, ""]);
  }
  assert.ok(!existsSync(join(dir, "lock")));
});

test("upgrade says what it does, and what its directory is then", async (t) => {
  const dir = await formerDirectory();
  const former = join(dir, "before-format-2");
  assert.deepEqual(await upgradeTo2(dir), {
    status: 0,
    stdout:
      `to do: format 1 to 2: give each file a first line; first 3 files, 9 bytes, are copied to ${former}\n` +
      `done: the directory has format 2; the files as they were are in ${former}\n`,
    stderr: "",
  });
  assert.ok(areAs(CHANGED, textIn(dir)));
  for (const verb of ["serve", "verify", "repair", "upgrade"]) {
    const { status, stdout, stderr } = await startStreamdir(t, [verb, dir]).ended;
    assert.deepEqual([status, stdout], [1, ""], verb);
    assert.match(stderr, /has format 2; this version knows format 1: use a newer version of streamdir/);
  }
});

test("upgrade that is killed in the middle leaves a directory that says so, and is run again", async (t) => {
  const dir = await formerDirectory();
  const halting = startNode(t, ["--import", import.meta.resolve("tsx"), HALTING, dir]);
  await halting.stdoutLine(/halted/);
  const meanwhile = await upgradeTo2(dir);
  assert.match(meanwhile.stderr, new RegExp(`the directory is in use by process ${halting.pid} on`));
  halting.kill("SIGKILL");
  await halting.ended;
  for (const verb of ["serve", "verify", "repair"]) {
    const { status, stderr } = await startStreamdir(t, [verb, dir]).ended;
    assert.equal(status, 1);
    assert.match(stderr, /an upgrade of .* to format 2 was cut short: run streamdir upgrade again of a version that knows format 2\n/);
  }
  const again = await upgradeTo2(dir);
  assert.equal(again.status, 0, again.stderr);
  assert.match(again.stdout, /^to do: format 1 to 2, which was cut short: .*\ndone: /);
  assert.ok(areAs(CHANGED, textIn(dir)));
  assert.ok(areAs(FORMER, textIn(join(dir, "before-format-2/files"))));
});

test("upgrade refuses a directory that a server has open, and one that is none of ours", async (t) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: NO_LOG });
  for (const flags of [["--dry-run"], [], ["--force-unlock"]]) {
    const busy = await startStreamdir(t, ["upgrade", dir, ...flags]).ended;
    assert.deepEqual([busy.status, busy.stdout], [1, ""]);
    assert.match(busy.stderr, new RegExp(`^streamdir: the directory is in use by process ${process.pid} on `));
  }
  await server.close();
  const foreign = await startStreamdir(t, ["upgrade", tempDir()]).ended;
  assert.equal(foreign.status, 1);
  assert.match(foreign.stderr, /is not a data directory of streamdir/);
});

test(
  "upgrade refuses a user who does not own the directory: its server could not write to what that one makes",
  { skip: lacksUsers },
  async (t) => {
    const dir = await closedDirectory();
    chmodSync(dir, 0o777);
    const other = await startStreamdir(t, ["upgrade", dir], { under: AS_NOBODY }).ended;
    assert.deepEqual([other.status, other.stdout], [1, ""]);
    assert.equal(other.stderr, `streamdir: ${dir} is of the user 0, and this is the user 65534: run it as its owner\n`);
    chmodSync(dir, 0o700);
    const shut = await startStreamdir(t, ["upgrade", dir], { under: AS_NOBODY }).ended;
    assert.deepEqual([shut.status, shut.stderr], [1, `streamdir: ${join(dir, "streamdir.json")} can't be read: permission denied\n`]);
    chownSync(join(dir, "streamdir.json"), 65534, 65534);
    const root = await startStreamdir(t, ["upgrade", dir]).ended;
    assert.deepEqual([root.status, root.stdout], [1, ""]);
    assert.equal(root.stderr, `streamdir: ${dir} is of the user 65534, and this is the user 0: run it as its owner\n`);
    const dry = await startStreamdir(t, ["upgrade", dir, "--dry-run"]).ended;
    assert.deepEqual([dry.status, dry.stderr], [0, ""], "it would change nothing");
  },
);
