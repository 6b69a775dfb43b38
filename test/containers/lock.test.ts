import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RealServer } from "../helpers/real-server.js";
import { startStreamdir, type TestScope } from "../helpers/process.js";

/** The directory of a server that was killed, with its lock as another machine would have written it. */
async function ofAnotherNode(scope: TestScope, host: string): Promise<string> {
  const server = new RealServer(scope, []);
  await server.start();
  server.process.kill("SIGKILL");
  await server.process.ended;
  const lock = join(server.dir, "lock");
  const holder = JSON.parse(readFileSync(lock, "utf8")) as object; // docs/format.md has its fields
  writeFileSync(lock, `${JSON.stringify({ ...holder, host, boot: "00000000-0000-0000-0000-000000000000" })}\n`);
  return server.dir;
}

test("after its node died, a pod of the same name takes the lock over by itself", async (t) => {
  const server = new RealServer(t, [], await ofAnotherNode(t, hostname()));
  await server.start();
  assert.equal((await server.stop()).status, 0);
});

test("after its node died, a pod of another name needs --force-unlock, and says so", async (t) => {
  const dir = await ofAnotherNode(t, "streams-7d9f-x2x4z");
  const refused = await startStreamdir(t, ["serve", dir, "--port", "0"]).ended;
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /in use by process \d+ on streams-7d9f-x2x4z .*: .*--force-unlock takes its lock away\n$/);
  const server = new RealServer(t, ["--force-unlock"], dir);
  await server.start();
  const { status, stderr } = await server.stop();
  assert.equal(status, 0);
  assert.match(stderr, /the lock of another process was taken away: its server must not be running/);
});

test("on the same node the kernel tells: a killed one is followed, a running one is not overridden", async (t) => {
  const server = new RealServer(t, []);
  await server.start();
  const second = await startStreamdir(t, ["serve", server.dir, "--port", "0", "--force-unlock"]).ended;
  assert.equal(second.status, 1);
  assert.match(second.stderr, /it runs on this machine, where --force-unlock overrides nobody/);
  rmSync(join(server.dir, "lock"));
  const third = await startStreamdir(t, ["serve", server.dir, "--port", "0"]).ended;
  assert.match(third.stderr, /in use by a process that has not said which it is/);
  await server.killAndRestart();
  assert.equal((await server.stop()).status, 0);
});
