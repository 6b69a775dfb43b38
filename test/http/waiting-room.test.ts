import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { requestBytes, startServer } from "../helpers/test-server.js";

const TIMEOUT_MS = 12_345;
const WAIT = "a?live=long-poll&offset=now";

describe("many long-polls of one stream", () => {
  test("are all woken by one append", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const waiting = await Promise.all(Array.from({ length: 200 }, () => server.begin("GET", WAIT)));
    await server.clock.armed(TIMEOUT_MS, { count: waiting.length });
    await server.send("POST", "a", { headers: { "Content-Type": "application/octet-stream" }, body: "x" });
    for (const connection of waiting) assert.equal((await connection.answer()).text, "x");
  });

  test("leave nothing behind when their clients go away", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const idleTimers = server.clock.pendingCount;
    const waiting = await Promise.all(Array.from({ length: 1000 }, () => server.begin("GET", WAIT)));
    await server.clock.armed(TIMEOUT_MS, { count: waiting.length });
    assert.equal(server.clock.pendingCount, idleTimers + waiting.length);
    await Promise.all(waiting.map((connection) => connection.close()));
    while (server.clock.pendingCount > idleTimers) await server.send("HEAD", "a");
    assert.equal(server.clock.pendingCount, idleTimers);
  });

  test("that are pipelined are answered in order, each with what came after it", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const connection = await server.connect();
    connection.write(Buffer.concat([requestBytes("GET", WAIT), requestBytes("GET", WAIT), requestBytes("HEAD", "a")]));
    await server.clock.armed(TIMEOUT_MS, { count: 2 });
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer({ toHead: true })).status, 200);
  });

  test("that are pipelined leave nothing behind when the client goes away", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const idleTimers = server.clock.pendingCount;
    const connection = await server.connect();
    connection.write(Buffer.concat([requestBytes("GET", WAIT), requestBytes("GET", WAIT)]));
    await server.clock.armed(TIMEOUT_MS, { count: 2 });
    await connection.close();
    while (server.clock.pendingCount > idleTimers) await server.send("HEAD", "a");
  });
});
