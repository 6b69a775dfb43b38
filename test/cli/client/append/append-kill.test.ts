import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { startStreamdir } from "../../../helpers/process.js";
import { RealServer } from "../../../helpers/real-server.js";
import { freePort } from "../../../helpers/free-ports.js";

const KILLS = 3;
const LINES = 3000;

test("an append goes on across kill -9 of the server: each line is stored once, in order", async (t) => {
  const server = new RealServer(t, ["--port", String(await freePort())]);
  await server.start();
  // So that there is something to wait at before the first line comes.
  await server.ask("PUT", "log", { headers: { "Content-Type": "text/plain" } });
  const append = startStreamdir(t, ["append", "log", "--lines", "--create", "--piece", "1KiB"], {
    hasInput: true,
    env: { STREAMDIR_URL: server.url },
  });
  const lines = Array.from({ length: LINES }, (_, at) => `line ${at} ${"x".repeat(at % 50)}\n`);
  const input = append.stdin ?? assert.fail("it has an input");
  const feed = async (from: number, to: number): Promise<void> => {
    for (const line of lines.slice(from, to)) if (!input.write(line)) await once(input, "drain");
  };
  const share = LINES / (KILLS + 1);
  await feed(0, share);
  let seen = "-1";
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const feeding = feed(kill * share, (kill + 1) * share);
    // A server that has not answered yet is none to wait for.
    const { headers } = await server.insist("GET", `log?live=long-poll&offset=${seen}`);
    seen = String(headers["stream-next-offset"]);
    await server.killAndRestart();
    await feeding;
  }
  input.end();
  const { status, stdout, stderr } = await append.ended;
  assert.deepEqual([status, stdout], [0, ""], stderr);
  assert.match(stderr, /does not answer \(\w+\); trying again\n/);
  assert.equal(await server.textOf("log"), lines.join(""));
});

test("an append whose server does not come back says where to go on, and the next run goes on there", async (t) => {
  const server = new RealServer(t, ["--port", String(await freePort())]);
  await server.start();
  const env = { STREAMDIR_URL: server.url };
  const first = startStreamdir(t, ["append", "log", "--lines", "--create", "--wait", "200ms"], { hasInput: true, env });
  first.stdin?.write("one\n");
  await server.insist("GET", "log?live=long-poll&offset=-1").catch(() => null);
  for (let body = ""; body !== "one\n";) ({ body } = await server.ask("GET", "log"));
  server.process.kill("SIGKILL");
  await server.process.ended;
  first.stdin?.write("two\n");
  const { status, stderr } = await first.ended;
  assert.equal(status, 69);
  const mark = /--resume (\S+)\n$/.exec(stderr)?.[1] ?? "";
  assert.match(mark, /^\w+:0:1:4:4$/);
  await server.start();
  const second = startStreamdir(t, ["append", "log", "--lines", "--resume", mark], { hasInput: true, env });
  second.stdin?.end("one\ntwo\nthree\n");
  assert.equal((await second.ended).status, 0);
  assert.equal((await server.ask("GET", "log")).body, "one\ntwo\nthree\n");
});
