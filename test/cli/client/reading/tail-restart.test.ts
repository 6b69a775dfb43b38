import assert from "node:assert/strict";
import test from "node:test";
import { startStreamdir } from "../../../helpers/process.js";
import { RealServer } from "../../../helpers/real-server.js";
import { freePort } from "../../../helpers/free-ports.js";

const TEXT = { "Content-Type": "text/plain" };

async function startServer(t: test.TestContext): Promise<RealServer> {
  const server = new RealServer(t, ["--port", String(await freePort())]);
  await server.start();
  await server.ask("PUT", "s", { headers: TEXT, body: "0\n" });
  return server;
}

test("tail -f goes on across kill -9 and stops of the server, and prints each line once", async (t) => {
  const server = await startServer(t);
  const tail = startStreamdir(t, ["tail", "s", "-f"], { env: { STREAMDIR_URL: server.url } });
  await tail.stdoutLine(/^0$/);
  for (let round = 1; round <= 4; round += 1) {
    if (round % 2 === 0) await server.stop();
    else server.process.kill("SIGKILL");
    await server.process.ended;
    await server.start();
    await server.ask("POST", "s", { headers: TEXT, body: `${round}\n` });
    await tail.stdoutLine(new RegExp(`^${round}$`));
  }
  await server.ask("POST", "s", { headers: { "Stream-Closed": "true" } });
  const { status, stdout, stderr } = await tail.ended;
  assert.deepEqual([status, stdout], [0, "0\n1\n2\n3\n4\n"]);
  assert.match(stderr, /does not answer \(\w+\); trying again\n.*answers again\n/);
});

test("SIGINT ends a tail with 130", async (t) => {
  const server = await startServer(t);
  const tail = startStreamdir(t, ["tail", "s", "-f"], { env: { STREAMDIR_URL: server.url } });
  await tail.stdoutLine(/^0$/);
  tail.kill("SIGINT");
  const { status, stderr } = await tail.ended;
  assert.deepEqual([status, stderr], [130, ""]);
});

test("a tail whose reader has gone ends with 0 at the next line", async (t) => {
  const server = await startServer(t);
  const tail = startStreamdir(t, ["tail", "s", "-f"], { env: { STREAMDIR_URL: server.url } });
  await tail.stdoutLine(/^0$/);
  tail.leaveStdout();
  await server.ask("POST", "s", { headers: TEXT, body: "1\n" });
  const { status, stderr } = await tail.ended;
  assert.deepEqual([status, stderr], [0, ""]);
});
