import assert from "node:assert/strict";
import { once } from "node:events";
import { spawn } from "node:child_process";
import http from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ask } from "../../helpers/real-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

const MAIN = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
/** Their lines take several times what a pipe and its reader hold. */
const REQUESTS = 2000;

test("a reader of the access log that stands still stops no request", async (context) => {
  const args = ["--import", import.meta.resolve("tsx"), MAIN, "serve", tempDir(), "--port=0", "--access-log", "--log-format=json"];
  const server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  context.after(async () => {
    const ended = once(server, "close");
    server.kill("SIGKILL");
    server.stdout.resume();
    await ended;
  });
  server.stdout.pause();
  const [ready] = (await once(server.stderr, "data")) as [Buffer];
  server.stderr.pipe(process.stderr);
  const { url } = JSON.parse(String(ready)) as { url: string };
  const agent = new http.Agent({ keepAlive: true });
  for (let count = 0; count < REQUESTS; count += 1) assert.equal((await ask(`${url}none`, "HEAD", { agent })).status, 404);
  agent.destroy();
});
