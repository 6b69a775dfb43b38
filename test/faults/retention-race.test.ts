import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { codeOf, RealServer } from "../helpers/real-server.js";

const STREAMS = 100;
const ROUNDS = 400;
const CLIENTS = 4;
const TYPE = { "Content-Type": "application/octet-stream" };

/** Each read waits for the disk, since memory has next to none of the streams, while appends beside it drop what it is to read. */
async function appendAndRead(server: RealServer, name: string): Promise<void> {
  const appends = Array.from({ length: 3 }, () => server.ask("POST", name, { headers: TYPE, body: "y".repeat(5000) }));
  const reads = ["", "", "&live=long-poll"].map((mode) => server.ask("GET", `${name}?offset=-1${mode}`));
  for (const { status } of await Promise.all(appends)) assert.equal(status, 204);
  for (const reply of await Promise.all(reads)) assert.equal(reply.status, 200, reply.status === 200 ? "" : codeOf(reply));
}

test("a reader of -1 is never told that the beginning is gone, whatever appends drop meanwhile", async (context) => {
  const server = new RealServer(context, ["--retention-bytes", "8KiB", "--max-loaded-streams", "8", "--tail-cache-bytes", "1MiB"]);
  await server.start();
  server.agent = new http.Agent({ keepAlive: true });
  context.after(async () => server.agent?.destroy());
  for (let index = 0; index < STREAMS; index += 1) {
    assert.equal((await server.ask("PUT", `s${index}`, { headers: TYPE, body: "x".repeat(4000) })).status, 201);
    // Sources of forks that are there, and of some that are gone.
    if (index % 5 === 0)
      assert.equal((await server.ask("PUT", `f${index}`, { headers: { "Stream-Forked-From": `/v1/stream/s${index}` } })).status, 201);
    if (index % 10 === 0) assert.equal((await server.ask("DELETE", `f${index}`)).status, 204);
  }
  let round = 0;
  const client = async (): Promise<void> => {
    while (round < ROUNDS) await appendAndRead(server, `s${(round += 1) % STREAMS}`);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  await server.stop();
  await server.verify();
});
