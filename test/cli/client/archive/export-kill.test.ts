import assert from "node:assert/strict";
import test from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";
import { startStreamdir } from "../../../helpers/process.js";
import { RealServer } from "../../../helpers/real-server.js";
import { freePort } from "../../../helpers/free-ports.js";

test("an export goes on across kill -9 of the server, and its archive is whole", async (t) => {
  const server = new RealServer(t, ["--port", String(await freePort()), "--chunk-bytes", "4KiB"]);
  await server.start();
  const line = `${"x".repeat(1023)}\n`;
  const text = line.repeat(12 * 1024);
  const headers = { "Content-Type": "text/plain" };
  await server.ask("PUT", "s", { headers });
  for (let at = 0; at < text.length; at += 64 * 1024) await server.ask("POST", "s", { headers, body: text.slice(at, at + 64 * 1024) });
  const exporting = startStreamdir(t, ["export", "s"], { env: { STREAMDIR_URL: server.url } });
  await exporting.stdoutLine(/"format":1/);
  await server.killAndRestart();
  const { status, stdout, stderr } = await exporting.ended;
  assert.equal(status, 0, stderr);
  const target = new VerbServer(t);
  assert.equal((await target.run(["import"], { stdin: stdout })).status, 0);
  assert.equal((await target.run(["cat", "s"])).stdout, text);
});
