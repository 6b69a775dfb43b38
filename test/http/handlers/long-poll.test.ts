import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { CURSOR_EPOCH_MS, CURSOR_INTERVAL_MS } from "../../../src/protocol/cursor.js";
import type { ServerOptions } from "../../../src/server.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";
import { placeOf, tokensOf } from "../../helpers/tokens.js";

const TEXT = { "Content-Type": "text/plain" };
/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;

/** A long-poll at the end of what {@link withText} wrote. */
async function atTail(server: TestServer): Promise<string> {
  return `a?live=long-poll&offset=${(await tokensOf(server, "a"))(5)}`;
}

async function withText(context: TestContext, options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS, ...options });
  await server.send("PUT", "a", { headers: TEXT, body: "hello" });
  return server;
}

function currentCursor(server: TestServer): number {
  return Math.floor((server.clock.nowMs() - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS);
}

describe("a long-poll with data to read", () => {
  test("is answered at once, as a read, with a cursor", async (context) => {
    const server = await withText(context);
    const { status, headers, text } = await server.send("GET", "a?live=long-poll&offset=-1");
    assert.deepEqual([status, text], [200, "hello"]);
    assert.equal(headers["content-type"], "text/plain");
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
    assert.equal(headers["stream-up-to-date"], "true");
    assert.equal(headers["stream-cursor"], String(currentCursor(server)));
    assert.equal(headers["cache-control"], "public, max-age=60, stale-while-revalidate=300");
    assert.ok(headers["etag"] !== undefined);
  });

  test("that is longer than a chunk is not up to date", async (context) => {
    const server = await withText(context, { chunkBytes: 2 });
    await server.send("POST", "a", { headers: TEXT, body: "more" });
    const { headers, text } = await server.send("GET", "a?live=long-poll&offset=-1");
    assert.deepEqual([text, headers["stream-up-to-date"]], ["hello", undefined]);
  });

  test("that the client has already is 304", async (context) => {
    const server = await withText(context);
    const { headers } = await server.send("GET", "a?live=long-poll&offset=-1");
    const again = await server.send("GET", "a?live=long-poll&offset=-1", { headers: { "If-None-Match": headers["etag"] ?? "" } });
    assert.equal(again.status, 304);
    assert.ok(again.headers["stream-cursor"] !== undefined);
  });
});

describe("a long-poll at the tail", () => {
  test("waits for the next append", async (context) => {
    const server = await withText(context);
    const idleTimers = server.clock.pendingCount;
    const waiting = await server.begin("GET", await atTail(server));
    await server.clock.armed(TIMEOUT_MS);
    await server.send("POST", "a", { headers: TEXT, body: " world" });
    const { status, headers, text } = await waiting.answer();
    assert.deepEqual([status, text], [200, " world"]);
    assert.equal(headers["stream-up-to-date"], "true");
    assert.ok(headers["stream-cursor"] !== undefined);
    assert.equal(server.clock.pendingCount, idleTimers);
  });

  test("from now on gets what comes, and nothing keeps it", async (context) => {
    const server = await withText(context);
    const waiting = await server.begin("GET", "a?live=long-poll&offset=now");
    await server.clock.armed(TIMEOUT_MS);
    await server.send("POST", "a", { headers: TEXT, body: " world" });
    const { status, headers, text } = await waiting.answer();
    assert.deepEqual([status, text], [200, " world"]);
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["etag"], undefined);
  });

  test("is 204 when its time is over", async (context) => {
    const server = await withText(context);
    const waiting = await server.begin("GET", await atTail(server));
    await server.clock.armed(TIMEOUT_MS);
    server.clock.advance(TIMEOUT_MS);
    const { status, headers, body } = await waiting.answer();
    assert.equal(status, 204);
    assert.equal(body.length, 0);
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
    assert.equal(headers["stream-up-to-date"], "true");
    assert.equal(headers["stream-cursor"], String(currentCursor(server)));
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["stream-closed"], undefined);
  });

  test("is 204 for a moment to all that wait for the same in nginx, but to nobody else", async (context) => {
    const server = await withText(context);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const tail = await atTail(server);
    assert.equal((await server.send("GET", tail)).headers["x-accel-expires"], "2");
    assert.equal((await server.send("GET", tail, { headers: { Authorization: "Bearer t" } })).headers["x-accel-expires"], undefined);
    assert.equal((await server.send("GET", "a?live=long-poll&offset=now")).headers["x-accel-expires"], undefined);
  });

  test("is 204 and closed when the stream is closed, without a wait", async (context) => {
    const server = await withText(context);
    const waiting = await server.begin("GET", await atTail(server));
    await server.clock.armed(TIMEOUT_MS);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    for (const answer of [
      await waiting.answer(),
      await server.send("GET", await atTail(server)),
      await server.send("GET", "a?live=long-poll&offset=now"),
    ]) {
      assert.equal(answer.status, 204);
      assert.equal(answer.headers["stream-closed"], "true");
      assert.equal(answer.headers["stream-up-to-date"], "true");
      assert.equal(answer.headers["stream-cursor"], undefined);
    }
  });

  test("gets the last data together with the closure", async (context) => {
    const server = await withText(context);
    const waiting = await server.begin("GET", await atTail(server));
    await server.clock.armed(TIMEOUT_MS);
    await server.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "!" });
    const { status, headers, text } = await waiting.answer();
    assert.deepEqual([status, text, headers["stream-closed"]], [200, "!", "true"]);
  });

  test("is 404 when the stream is deleted", async (context) => {
    const server = await withText(context);
    const waiting = await server.begin("GET", await atTail(server));
    await server.clock.armed(TIMEOUT_MS);
    await server.send("DELETE", "a");
    assert.equal((await waiting.answer()).status, 404);
  });

  test("is 404 when the stream expires", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a", { headers: { "Stream-TTL": "2" } });
    const waiting = await server.begin("GET", "a?live=long-poll&offset=-1");
    await server.clock.armed(TIMEOUT_MS);
    server.clock.advance(3000);
    assert.equal((await waiting.answer()).status, 404);
  });

  test("of JSON gets an array of what came together", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "j", { headers: { "Content-Type": "application/json" } });
    const waiting = await server.begin("GET", "j?live=long-poll&offset=-1");
    await server.clock.armed(TIMEOUT_MS);
    await server.send("POST", "j", { headers: { "Content-Type": "application/json" }, body: "[1,2]" });
    assert.deepEqual(JSON.parse((await waiting.answer()).text), [1, 2]);
  });
});

describe("the cursor of a long-poll", () => {
  test("is greater than the client's, on 200 and on 204", async (context) => {
    const server = await withText(context);
    const cursor = currentCursor(server) + 1_000_000;
    const { headers } = await server.send("GET", `a?live=long-poll&offset=-1&cursor=${cursor}`);
    assert.ok(Number(headers["stream-cursor"]) > cursor);
    const waiting = await server.begin("GET", `${await atTail(server)}&cursor=${cursor}`);
    await server.clock.armed(TIMEOUT_MS);
    server.clock.advance(TIMEOUT_MS);
    assert.ok(Number((await waiting.answer()).headers["stream-cursor"]) > cursor);
  });
});

describe("a long-poll is refused", () => {
  for (const [title, target, code] of [
    ["without an offset", "a?live=long-poll", "invalid-offset"],
    ["in a mode that is not there", "a?live=poll&offset=-1", "invalid-query"],
    ["beyond the tail", 6, "invalid-offset"],
  ] as const) {
    test(`${title}: 400`, async (context) => {
      const server = await withText(context);
      const answer = await server.send(
        "GET",
        typeof target === "string" ? target : `a?live=long-poll&offset=${(await tokensOf(server, "a"))(target)}`,
      );
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [400, code]);
    });
  }

  test("of a stream that is not there: 404", async (context) => {
    const server = await startServer(context);
    assert.equal((await server.send("GET", "a?live=long-poll&offset=now")).status, 404);
  });
});
