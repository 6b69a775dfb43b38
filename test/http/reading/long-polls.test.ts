import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DirectRequest } from "../../../src/http/node/direct-request.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const TIMEOUT_MS = 12_345;
const WAIT = "a?live=long-poll&offset=now";

test("a long-poll that waits keeps no headers but those that are understood", async (context) => {
  const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
  await server.send("PUT", "a");
  const forgotten = context.mock.method(DirectRequest.prototype, "forgetHeaders");
  const waiting = await server.begin("GET", WAIT, { headers: { Origin: "https://page.example", "X-Much": "x".repeat(1000) } });
  await server.clock.armed(TIMEOUT_MS);
  assert.equal(forgotten.mock.callCount(), 1);
  server.clock.advance(TIMEOUT_MS);
  const { status, headers } = await waiting.answer();
  assert.deepEqual([status, headers["access-control-allow-origin"]], [204, "*"]);
});

describe("many long-polls of one stream", () => {
  test("are all woken by one append", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const waiting = await Promise.all(Array.from({ length: 200 }, () => server.begin("GET", WAIT)));
    await server.clock.armed(TIMEOUT_MS, { count: waiting.length });
    await server.send("POST", "a", { headers: { "Content-Type": "application/octet-stream" }, body: "x" });
    for (const connection of waiting) assert.equal((await connection.answer()).text, "x");
  });

  test("have one cursor from then on, whatever they came with", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const cursors = ["", "&cursor=1", "&cursor=999999999", "&cursor=999999000", `&cursor=${"9".repeat(40)}`, "&cursor=x"];
    const waiting = await Promise.all(cursors.map((cursor) => server.begin("GET", `a?live=long-poll&offset=-1${cursor}`)));
    await server.clock.armed(TIMEOUT_MS, { count: waiting.length });
    await server.send("POST", "a", { headers: { "Content-Type": "application/octet-stream" }, body: "x" });
    const [first, ...others] = (await Promise.all(waiting.map((connection) => connection.answer()))).map(
      ({ headers }) => headers["stream-cursor"],
    );
    assert.ok(Number(first) > 999999999);
    assert.deepEqual(
      others.filter((cursor) => cursor !== first).map((cursor) => cursor?.length),
      [41],
    );
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

  test("of clients that are gone before they could wait do not wait", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    await server.stop();
    // Streams that memory has forgotten take a while to find.
    const again = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS, dir: server.dir });
    const connection = await again.begin("GET", WAIT);
    await connection.close();
    await again.send("HEAD", "a");
    await again.stop();
  });
});

describe("a long-poll of a stream that its forks need", () => {
  for (const [what, end] of [
    ["is deleted", (server: TestServer) => server.send("DELETE", "a")],
    ["expires", (server: TestServer) => Promise.resolve(server.clock.advance(3000))],
  ] as const)
    test(`is refused as any request is from then on when it ${what}`, async (context) => {
      const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
      await server.send("PUT", "a", { headers: { "Stream-TTL": "2" } });
      await server.send("PUT", "fork", { headers: { "Stream-Forked-From": "/v1/stream/a", "Stream-TTL": "100" } });
      const waiting = await server.begin("GET", WAIT);
      await server.clock.armed(TIMEOUT_MS);
      await end(server);
      for (const { status, text } of [await waiting.answer(), await server.send("GET", WAIT)])
        assert.deepEqual([status, JSON.parse(text).code], [410, "stream-gone"]);
    });
});
