import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { unsentBytesOf } from "../../../src/http/node/write-queue.js";
import { AcceptedSockets } from "../../helpers/accepted-sockets.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer } from "../../helpers/test-server.js";
import { until } from "../../helpers/until.js";
import { parseEventStream } from "../../protocol/event-stream-parser.js";

const TEXT = { "Content-Type": "text/plain" };
const LIFETIME_MS = 54_321;
const SHORTEST = LIFETIME_MS * 0.9;
const LONGEST = LIFETIME_MS * 1.1;

describe("an SSE connection", () => {
  test("ends by itself after about its lifetime, between events", async (context) => {
    const server = await startServer(context, { sseLifetimeMs: LIFETIME_MS });
    await server.send("PUT", "a", { headers: TEXT, body: "hello" });
    const reader = await follow(server, "a?live=sse&offset=-1");
    await server.clock.armed(SHORTEST, { maxMs: LONGEST });
    await nextPair(reader);
    server.clock.advance(SHORTEST - 1);
    await server.send("POST", "a", { headers: TEXT, body: "!" });
    assert.equal((await nextPair(reader)).data, "!");
    server.clock.advance(LONGEST - SHORTEST + 1);
    assert.equal(await reader.rest(), "");
  });

  test("leaves nothing behind when its client goes away", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "hello" });
    const idleTimers = server.clock.pendingCount;
    const readers = await Promise.all(Array.from({ length: 100 }, () => follow(server, "a?live=sse&offset=-1")));
    const heartbeatTimers = 1;
    assert.equal(server.clock.pendingCount, idleTimers + readers.length + heartbeatTimers);
    await Promise.all(readers.map((reader) => reader.close()));
    await until(() => server.clock.pendingCount <= idleTimers);
  });

  test("whose client does not read is cut at the end of its lifetime", async (context) => {
    const server = await startServer(context, { sseLifetimeMs: LIFETIME_MS });
    const accepted = new AcceptedSockets(context);
    const body = Buffer.alloc(12 * 1024 * 1024);
    await server.send("PUT", "a", { body });
    const reader = await server.connect();
    reader.socket.pause();
    reader.write("GET /v1/stream/a?live=sse&offset=-1 HTTP/1.1\r\nHost: a\r\n\r\n");
    await server.clock.armed(SHORTEST, { maxMs: LONGEST });
    const { socket } = reader;
    await until(() => unsentBytesOf(accepted.otherEndOf(socket)) > 0);
    server.clock.advance(LONGEST);
    server.clock.advance(5000);
    reader.socket.resume();
    await reader.head();
    const events = parseEventStream(await reader.rest());
    const bytes = events.filter(({ type }) => type === "data").reduce((sum, { data }) => sum + Buffer.from(data, "base64").length, 0);
    assert.ok(bytes < body.length, `${bytes} bytes came`);
  });

  for (const [what, isClosed] of [
    ["the last event of a closed stream", true],
    ["the event on its way when its lifetime is over", false],
  ] as const) {
    test(`whose client takes its time gets ${what} whole`, async (context) => {
      const server = await startServer(context, { sseLifetimeMs: 20_000 });
      const accepted = new AcceptedSockets(context);
      const body = Buffer.alloc(12 * 1024 * 1024, "x");
      await server.send("PUT", "a", { headers: isClosed ? { "Stream-Closed": "true" } : {}, body });
      const reader = await server.connect();
      const { socket } = reader;
      socket.pause();
      reader.write("GET /v1/stream/a?live=sse&offset=-1 HTTP/1.1\r\nHost: a\r\n\r\n");
      await server.send("HEAD", "a"); // then that connection has been accepted, too
      await until(() => unsentBytesOf(accepted.otherEndOf(socket)) > 0);
      server.clock.advance(22_000);
      server.clock.advance(5_000);
      socket.resume();
      await reader.head();
      const text = await reader.rest();
      assert.ok(text.endsWith("\n\n"), text.slice(-100));
      const events = parseEventStream(text);
      assert.deepEqual(
        events.map(({ type }) => type),
        ["data", "control"],
      );
      assert.ok(Buffer.from(events[0]?.data ?? "", "base64").equals(body));
      assert.equal(JSON.parse(events[1]?.data ?? "").streamClosed, isClosed ? true : undefined);
    });
  }
});
