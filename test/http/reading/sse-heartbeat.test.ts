import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { describe, test } from "node:test";
import { SseHeartbeat, type SilentReaders } from "../../../src/http/reading/sse-heartbeat.js";
import { createHandler } from "../../../src/server.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { connectionTo } from "../../helpers/raw-connection.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { startServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const INTERVAL_MS = 16_000;
const COMMENT = ":\n\n";

/** Readers that note when they were sent comments. */
class Listeners implements SilentReaders {
  readonly sentAtMs: number[];
  readonly beats: string[] = [];

  constructor(...sentAtMs: number[]) {
    this.sentAtMs = sentAtMs;
  }

  beat(sinceMs: number, nowMs: number): number {
    for (const [reader, atMs] of this.sentAtMs.entries()) {
      if (atMs > sinceMs) continue;
      this.sentAtMs[reader] = nowMs;
      this.beats.push(`${reader} at ${nowMs}`);
    }
    return Math.min(...this.sentAtMs);
  }
}

describe("the heartbeat of SSE readers", () => {
  test("reaches each reader within its interval, and readers that came about together together", () => {
    const clock = new ManualClock(0);
    const readers = new Listeners(0);
    const heartbeat = new SseHeartbeat(clock, INTERVAL_MS, () => [readers]);
    heartbeat.start();
    clock.advance(900);
    readers.sentAtMs.push(900);
    heartbeat.start();
    clock.advance(7100);
    readers.sentAtMs.push(8000);
    heartbeat.start();
    assert.equal(clock.pendingCount, 1);
    clock.advance(INTERVAL_MS - 8001);
    assert.deepEqual(readers.beats, []);
    clock.advance(1);
    assert.deepEqual(readers.beats.splice(0), ["0 at 16000", "1 at 16000"]);
    clock.advance(INTERVAL_MS);
    assert.deepEqual(readers.beats.splice(0), ["2 at 24000", "0 at 32000", "1 at 32000"]);
    assert.equal(clock.pendingCount, 1);
  });

  test("has no timer where there are no readers", () => {
    const clock = new ManualClock(0);
    const groups = [new Listeners(0)];
    const heartbeat = new SseHeartbeat(clock, INTERVAL_MS, () => groups);
    heartbeat.start();
    groups.pop();
    clock.advance(INTERVAL_MS);
    assert.equal(clock.pendingCount, 0);
    heartbeat.start();
    heartbeat.stop();
    heartbeat.stop();
    assert.equal(clock.pendingCount, 0);
  });
});

describe("an SSE reader that is sent nothing", () => {
  for (const version of ["1.1", "1.0"]) {
    test(`over HTTP/${version} gets a comment each interval, and events as ever`, async (context) => {
      const server = await startServer(context, { sseHeartbeatMs: INTERVAL_MS });
      await server.send("PUT", "a", { headers: TEXT });
      const reader = await server.connect();
      reader.write(`GET /v1/stream/a?live=sse&offset=-1 HTTP/${version}\r\nHost: a\r\n\r\n`);
      await reader.head();
      await nextPair(reader);
      for (let round = 0; round < 2; round += 1) {
        server.clock.advance(INTERVAL_MS - 1);
        await server.send("HEAD", "a");
        server.clock.advance(1);
        assert.equal(await reader.until("\n\n"), COMMENT);
      }
      await server.send("POST", "a", { headers: TEXT, body: "one" });
      assert.match(await reader.until("\n\n"), /^event: data\ndata:one\n/);
      await nextPair(reader);
      server.clock.advance(INTERVAL_MS);
      assert.equal(await reader.until("\n\n"), COMMENT);
      await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
      assert.equal((await nextPair(reader)).control["streamClosed"], true);
      assert.equal(await reader.rest(), "");
    });
  }

  test("in somebody else's server gets a comment, too", async (context) => {
    const clock = new ManualClock();
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent", clock });
    const http = createHttpServer(handler);
    const client = await connectionTo(context, http);
    context.after(() => handler.close());
    client.write("PUT /v1/stream/a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n");
    await client.answer();
    client.write("GET /v1/stream/a?live=sse&offset=-1 HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.head();
    await nextPair(client);
    clock.advance(15_000);
    assert.equal(await client.until("\n\n"), COMMENT);
  });

  test("does not keep a timer behind", async (context) => {
    const server = await startServer(context, { sseHeartbeatMs: INTERVAL_MS });
    await server.send("PUT", "a", { headers: TEXT, body: "x" });
    const idleTimers = server.clock.pendingCount;
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    await reader.rest();
    await reader.close();
    const closed = await follow(server, "a?live=sse&offset=-1");
    await closed.rest();
    await closed.close();
    while (server.clock.pendingCount > idleTimers) await server.send("HEAD", "a");
  });
});
