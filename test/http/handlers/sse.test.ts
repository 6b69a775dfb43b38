import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { guard } from "../../../src/http/context/guard.js";
import { lastEventOffset, sse } from "../../../src/http/handlers/sse.js";
import { SseFeeds } from "../../../src/http/reading/sse-feed.js";
import { CURSOR_EPOCH_MS, CURSOR_INTERVAL_MS } from "../../../src/protocol/cursor.js";
import type { ServerOptions } from "../../../src/server.js";
import { created, forked, openEngine } from "../../helpers/engine.js";
import { startExchanges } from "../../helpers/exchange-server.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";
import { checkOf } from "../../../src/protocol/offset.js";
import { tokenIn, tokensOf } from "../../helpers/tokens.js";
import { Barrier, SEGMENT } from "../../helpers/watched-files.js";

const TEXT = { "Content-Type": "text/plain" };
const JSON_TYPE = { "Content-Type": "application/json" };

async function withText(context: TestContext, body = "", options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const server = await startServer(context, options);
  await server.send("PUT", "a", { headers: TEXT, body });
  return server;
}

function currentCursor(server: TestServer): number {
  return Math.floor((server.clock.nowMs() - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS);
}

describe("the head of an SSE answer", () => {
  test("lets nobody keep or gather what follows, which comes in chunks", async (context) => {
    const server = await withText(context, "hello");
    const { status, headers } = await (await server.begin("GET", "a?live=sse&offset=-1")).head();
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/event-stream");
    assert.equal(headers["cache-control"], "no-cache, no-transform");
    assert.equal(headers["x-accel-buffering"], "no");
    assert.equal(headers["connection"], "close");
    assert.equal(headers["transfer-encoding"], "chunked");
    for (const absent of ["content-length", "stream-sse-data-encoding", "etag"]) assert.equal(headers[absent], undefined, absent);
  });

  for (const [contentType, encoding] of [
    ["image/png", "base64"],
    ["application/json; charset=utf-8", undefined],
    ["text/html", undefined],
  ] as const) {
    test(`of ${contentType} says ${encoding ?? "no"} encoding`, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "b", { headers: { "Content-Type": contentType } });
      const { headers } = await (await server.begin("GET", "b?live=sse&offset=-1")).head();
      assert.equal(headers["stream-sse-data-encoding"], encoding);
    });
  }
});

describe("the place in the head of an SSE answer", () => {
  test("is where the read begins, and its cursor is that of the first event", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    const now = String(currentCursor(server));
    const cases = [
      ["-1", token(0)],
      ["now", token(5)],
      [token(3), token(3)],
    ] as const;
    for (const [offset, begin] of cases) {
      for (const cursor of [null, "1", now, "999999999"]) {
        const reader = await server.begin("GET", `a?live=sse&offset=${offset}${cursor === null ? "" : `&cursor=${cursor}`}`);
        const { headers } = await reader.head();
        assert.equal(headers["stream-next-offset"], begin);
        assert.equal(headers["stream-cursor"], (await nextPair(reader)).control["streamCursor"]);
        if (cursor === null || cursor === "1") assert.equal(headers["stream-cursor"], now);
        else assert.ok(Number(headers["stream-cursor"]) > Number(cursor));
      }
    }
  });

  test("is that of Last-Event-ID, where one came", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    const reader = await server.begin("GET", "a?live=sse&offset=-1", { headers: { "Last-Event-ID": token(3) } });
    assert.equal((await reader.head()).headers["stream-next-offset"], token(3));
  });
});

describe("an SSE reader learns when to come back", () => {
  test("once, in its first event", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    assert.match(await reader.until("\n\n"), /^retry: 100\nevent: control\n/);
    await server.send("POST", "a", { headers: TEXT, body: "one" });
    assert.match(await reader.until("\n\n"), /^event: data\n/);
  });

  test("at a time of its own, where many may end together", async (context) => {
    const server = await withText(context);
    const readers = await Promise.all(Array.from({ length: 200 }, () => follow(server, "a?live=sse&offset=-1")));
    const first = await Promise.all(readers.map((reader) => reader.until("\n\n")));
    const delays = first.map((event) => Number(/^retry: (\d+)\n/.exec(event)?.[1]));
    assert.ok(
      delays.every((delayMs) => delayMs >= 100 && delayMs <= 300),
      delays.join(),
    );
    assert.ok(new Set(delays).size > 20, delays.join());
  });
});

describe("SSE", () => {
  test("begins with the backlog, and says that this is all", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, "a?live=sse&offset=-1");
    const cursor = String(currentCursor(server));
    const token = await tokensOf(server, "a");
    assert.deepEqual(await nextPair(reader), {
      data: "hello",
      control: { streamNextOffset: token(5), streamCursor: cursor, upToDate: true },
      id: token(5),
    });
  });

  test("of an empty stream begins with a control event at its start", async (context) => {
    const server = await withText(context);
    const { data, control } = await nextPair(await follow(server, "a?live=sse&offset=-1"));
    const token = await tokensOf(server, "a");
    assert.deepEqual([data, control["streamNextOffset"], control["upToDate"]], [null, token(0), true]);
  });

  test("from now on begins with a control event at the tail", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, "a?live=sse&offset=now");
    const { data, control } = await nextPair(reader);
    const token = await tokensOf(server, "a");
    assert.deepEqual([data, control["streamNextOffset"], control["upToDate"]], [null, token(5), true]);
    await server.send("POST", "a", { headers: TEXT, body: "!" });
    assert.equal((await nextPair(reader)).data, "!");
  });

  test("sends each append as one event as it comes", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    for (const [at, body] of ["one", "two\nlines", " three"].entries()) {
      await server.send("POST", "a", { headers: TEXT, body });
      const { data, control } = await nextPair(reader);
      assert.deepEqual([data, control["upToDate"]], [body, true], String(at));
    }
  });

  test("sends a long append whole to a reader that has all before it", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    const body = "x".repeat(300_000);
    await server.send("POST", "a", { headers: TEXT, body });
    assert.equal((await nextPair(reader)).data, body);
  });

  test("goes on from a token", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    assert.equal((await nextPair(await follow(server, `a?live=sse&offset=${token(3)}`))).data, "lo");
  });

  test("ends with the closure, behind the last append", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    await server.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "end" });
    const token = await tokensOf(server, "a");
    assert.deepEqual(await nextPair(reader), {
      data: "end",
      control: { streamNextOffset: token(3), upToDate: true, streamClosed: true },
      id: token(3),
    });
    assert.equal(await reader.rest(), "");
  });

  test("ends with the closure alone", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, "a?live=sse&offset=now");
    await nextPair(reader);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const { data, control } = await nextPair(reader);
    const token = await tokensOf(server, "a");
    assert.deepEqual([data, control], [null, { streamNextOffset: token(5), upToDate: true, streamClosed: true }]);
    assert.equal(await reader.rest(), "");
  });

  test("of a stream that is closed already sends what is left and ends", async (context) => {
    const server = await withText(context, "hello");
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const token = await tokensOf(server, "a");
    for (const [offset, expected] of [
      ["-1", "hello"],
      ["now", null],
      [token(5), null],
    ] as const) {
      const reader = await follow(server, `a?live=sse&offset=${offset}`);
      const { data, control } = await nextPair(reader);
      assert.deepEqual([data, control], [expected, { streamNextOffset: token(5), upToDate: true, streamClosed: true }]);
      assert.equal(await reader.rest(), "");
    }
  });

  test("ends when the stream is deleted, without a word", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    await server.send("DELETE", "a");
    assert.equal(await reader.rest(), "");
  });

  test("of bytes is base64", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "b", { body: Buffer.from([0, 1, 255]) });
    assert.equal((await nextPair(await follow(server, "b?live=sse&offset=-1"))).data, "AAH/");
  });

  test("of JSON is an array on lines of its own", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "j", { headers: JSON_TYPE, body: '[{"k":1},2]' });
    const reader = await follow(server, "j?live=sse&offset=-1");
    assert.equal(await reader.until("\n\n"), 'retry: 100\nevent: data\ndata:[\ndata:{"k":1},\ndata:2\ndata:]\n\n');
    await nextPair(reader);
    await server.send("POST", "j", { headers: JSON_TYPE, body: "[3]" });
    assert.deepEqual(JSON.parse((await nextPair(reader)).data ?? ""), [3]);
  });

  test("holds back a character until all of it is there", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    const euro = Buffer.from("€");
    await server.send("POST", "a", { headers: TEXT, body: Buffer.concat([Buffer.from("1"), euro.subarray(0, 2)]) });
    const first = await nextPair(reader);
    const token = await tokensOf(server, "a");
    assert.deepEqual([first.data, first.control["streamNextOffset"]], ["1", token(1)]);
    await server.send("POST", "a", { headers: TEXT, body: euro.subarray(2) });
    const second = await nextPair(reader);
    assert.deepEqual([Buffer.from(second.data ?? "", "latin1").toString(), second.control["streamNextOffset"]], ["€", token(4)]);
  });

  test("sends what it held back when the stream is closed", async (context) => {
    const server = await withText(context);
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    await server.send("POST", "a", { headers: TEXT, body: Buffer.from([0x31, 0xe2, 0x82]) });
    assert.equal((await nextPair(reader)).data, "1");
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const { data, control } = await nextPair(reader);
    const token = await tokensOf(server, "a");
    assert.deepEqual([data, control], ["\xe2\x82", { streamNextOffset: token(3), upToDate: true, streamClosed: true }]);
    assert.equal(await reader.rest(), "");
  });

  test("of a stream that is not there is 404", async (context) => {
    const server = await startServer(context);
    assert.equal((await server.send("GET", "a?live=sse&offset=-1")).status, 404);
  });

  test("without an offset is 400", async (context) => {
    const server = await withText(context);
    assert.equal((await server.send("GET", "a?live=sse")).status, 400);
  });

  test("to an HTTP/1.0 client is the same", async (context) => {
    const server = await withText(context, "hello");
    const connection = await server.connect();
    connection.write("GET /v1/stream/a?live=sse&offset=-1 HTTP/1.0\r\n\r\n");
    assert.equal((await connection.head()).headers["transfer-encoding"], undefined);
    assert.equal((await nextPair(connection)).data, "hello");
  });
});

describe("SSE of a stream that is deleted while its beginning is read", () => {
  for (const [what, isForked, status] of [
    ["and is kept for a fork is 410", true, 410],
    ["and is gone is 404", false, 404],
  ] as const) {
    test(what, async (context) => {
      const { storage, dir } = await openEngine();
      const stream = await created(storage, "a", "hello", { contentType: "text/plain" });
      if (isForked) await forked(storage, stream, "fork");
      await storage.close();
      const server = await startExchanges(context, { dir });
      const disk = new Barrier();
      const begun = new Promise<void>((resolve) => {
        server.engine.files.gate = ({ kind, path }) => {
          if (kind !== "read" || !SEGMENT.test(path)) return undefined;
          resolve();
          return disk.opened;
        };
      });
      const { connection, exchange } = await server.receive("GET", "a");
      const feeds = new SseFeeds(server.context);
      guard(server.context, exchange, () => sse(server.context, feeds, exchange, "a", { offset: { kind: "start" }, cursor: null }));
      await begun;
      assert.equal((await server.context.registry.delete("a")).kind, "deleted");
      disk.open();
      assert.equal((await connection.head()).status, status);
    });
  }
});

describe("Last-Event-ID", () => {
  test("goes before the offset of the URL", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    const reader = await follow(server, "a?live=sse&offset=-1", { "Last-Event-ID": token(4) });
    assert.equal((await nextPair(reader)).data, "o");
  });

  test("that is not a token counts for nothing", async (context) => {
    const server = await withText(context, "hello");
    for (const id of ["7", "now", ""]) {
      const token = await tokensOf(server, "a");
      assert.equal((await nextPair(await follow(server, `a?live=sse&offset=${token(4)}`, { "Last-Event-ID": id }))).data, "o");
    }
  });

  test("is read only as a token", () => {
    assert.deepEqual(lastEventOffset(tokenIn("id", 4)), { kind: "at", partStart: 0, byteInPart: 4, check: checkOf("id") });
    for (const id of [null, "-1", "now", "x"]) assert.equal(lastEventOffset(id), null);
  });
});

describe("the cursor of an SSE read", () => {
  test("is greater than the client's, and never goes back", async (context) => {
    const server = await withText(context, "hello");
    const theirs = currentCursor(server);
    const reader = await follow(server, `a?live=sse&offset=-1&cursor=${theirs}`);
    const first = Number((await nextPair(reader)).control["streamCursor"]);
    assert.ok(first > theirs);
    await server.send("POST", "a", { headers: TEXT, body: "!" });
    assert.equal(Number((await nextPair(reader)).control["streamCursor"]), first);
  });

  test("is the current one when the client's is behind it", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, `a?live=sse&offset=-1&cursor=${currentCursor(server) - 1}`);
    assert.equal((await nextPair(reader)).control["streamCursor"], String(currentCursor(server)));
  });

  test("moves on with the time", async (context) => {
    const server = await withText(context, "hello");
    const reader = await follow(server, "a?live=sse&offset=-1");
    const first = Number((await nextPair(reader)).control["streamCursor"]);
    server.clock.advance(CURSOR_INTERVAL_MS);
    await server.send("POST", "a", { headers: TEXT, body: "!" });
    assert.equal(Number((await nextPair(reader)).control["streamCursor"]), first + 1);
  });
});
