import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test, type TestContext } from "node:test";
import { Dispatcher } from "../../../src/http/dispatch.js";
import { StreamRequest } from "../../../src/http/http2/stream-request.js";
import {
  CODE,
  FLAG,
  frame,
  FRAME,
  headerBlock,
  requestHeaders,
  setting,
  uint32,
  type Frame,
  type FrameConnection,
} from "../../helpers/frames.js";
import { openConnections } from "../../helpers/test-server-connections.js";
import { ask, startSecure, type SecureServer } from "../../helpers/secure-server.js";
import { until } from "../../helpers/until.js";

const GET = FLAG.endHeaders | FLAG.endStream;
const OPEN_READ = requestHeaders("GET", "/v1/stream/a?offset=-1&live=sse");

const WINDOW = 64 * 1024;

/** Odd numbers from 1 on, as a client gives them to its streams. */
function ids(count: number): number[] {
  return Array.from({ length: count }, (_, at) => 2 * at + 1);
}

describe("a connection of HTTP/2 is bounded:", () => {
  test("it has 256 streams, and more are refused", async (context) => {
    const server = await startSecure(context);
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
    const client = await server.frames();
    client.write(...ids(257).map((id) => frame(FRAME.headers, GET, id, OPEN_READ)));
    assert.equal(await client.reset(2 * 256 + 1), CODE.refused);
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 2 * 255 + 1);
    assert.ok(await server.isServing());
  });

  test("a request has at most 128 headers, which cost more than their bytes", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    const pad = (count: number): Buffer =>
      requestHeaders(
        "GET",
        "/v1/stream/a?offset=-1",
        Array.from({ length: count }, (_, at) => [`x${at}`, ""] as const),
      );
    client.write(frame(FRAME.headers, GET, 1, pad(120)), frame(FRAME.headers, GET, 3, pad(130)));
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 1);
    const reset = await client.reset(3);
    // Node says the one and nghttp2 the other; either may be first.
    assert.ok(
      [CODE.calm, CODE.internal].some((code) => code === reset),
      String(reset),
    );
    assert.ok(await server.isServing());
  });

  for (const [title, code] of [
    ["as not wanted", CODE.cancel],
    ["without an error", CODE.none],
  ] as const)
    test(`who opens streams only to reset them ${title} is told to calm down`, async (context) => {
      const server = await startSecure(context);
      await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
      const client = await server.frames({ settings: setting(4, 0) });
      const rounds = ids(2_000).map((id) =>
        Buffer.concat([frame(FRAME.headers, GET, id, OPEN_READ), frame(FRAME.reset, 0, id, uint32(code))]),
      );
      client.write(...rounds);
      const said = await client.goaway();
      assert.ok(said === null || said === CODE.calm, `ended with ${said}`);
      await client.ended();
      assert.ok(await server.isServing());
    });

  test("who is refused in the middle of a body, again and again, has reset nothing", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    const head = requestHeaders("POST", "/v1/stream/missing", [["content-type", "text/plain"]]);
    client.write(frame(FRAME.window, 0, 0, uint32(1024 * 1024)));
    for (const id of ids(600)) {
      client.write(frame(FRAME.headers, FLAG.endHeaders, id, head), frame(FRAME.data, 0, id, Buffer.from("part")));
      assert.equal(await client.reset(id), CODE.none);
    }
    assert.ok(await server.isServing());
  });

  test("who makes the server reset streams is cut", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    const head = requestHeaders("POST", "/v1/stream/a", [["content-length", "5"]]);
    const tooMuch = Buffer.from("more than that");
    for (const id of ids(1_500)) client.write(frame(FRAME.headers, FLAG.endHeaders, id, head), frame(FRAME.data, 0, id, tooMuch));
    await client.ended();
    assert.ok(await server.isServing());
  });

  test("a head of more than 16 KiB is refused in words, and one of more than 48 KiB without", async (context) => {
    const server = await startSecure(context);
    const { status, body } = await ask(server.session(), "GET", "a", { headers: { "x-much": "x".repeat(17 * 1024) } });
    assert.equal(status, 431);
    assert.equal((JSON.parse(body) as { code: string }).code, "header-too-large");
    const client = await server.frames();
    await client.frame(({ type, flags }) => type === FRAME.settings && flags === FLAG.ack);
    client.write(frame(FRAME.settings, FLAG.ack, 0));
    const much = headerBlock(Array.from({ length: 8 }, (_, at) => [`x-${at}`, "x".repeat(7 * 1024)]));
    const block = Buffer.concat([requestHeaders("GET", "/v1/stream/a"), much]);
    client.write(frame(FRAME.headers, FLAG.endStream, 1, block.subarray(0, 16_000)));
    for (let at = 16_000; at < block.length; at += 16_000)
      client.write(frame(FRAME.continuation, at + 16_000 < block.length ? 0 : FLAG.endHeaders, 1, block.subarray(at, at + 16_000)));
    const { payload } = await client.frame(({ type }) => type === FRAME.reset || type === FRAME.goaway);
    assert.equal(payload.readUInt32BE(payload.length === 4 ? 0 : 4), CODE.calm);
    assert.ok(await server.isServing());
  });

  for (const [title, flood] of [
    ["PING", () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", () => frame(FRAME.settings, 0, 0, setting(4, 65_535))],
  ] as const)
    test(`who floods it with ${title} and reads no answer costs no memory, and is cut in the end`, async (context) => {
      const server = await startSecure(context);
      const client = await server.frames();
      client.socket.pause();
      const bytes = Buffer.concat(Array.from({ length: 10_000 }, flood));
      const before = process.memoryUsage().rss;
      for (let round = 0; round < 100; round += 1) client.write(bytes);
      assert.ok(await server.isServing());
      assert.ok(process.memoryUsage().rss - before < 256 * 1024 * 1024);
      for (let round = 0; round < 40; round += 1) server.test.clock.advance(5_000);
      await client.ended();
      assert.ok(await server.isServing());
    });

  test("empty frames of a body are counted, and too many end it", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    client.write(frame(FRAME.headers, FLAG.endHeaders, 1, requestHeaders("POST", "/v1/stream/a", [["content-type", "text/plain"]])));
    const empty = Buffer.concat(Array.from({ length: 1_000 }, () => frame(FRAME.data, 0, 1)));
    for (let round = 0; round < 10; round += 1) client.write(empty);
    assert.notEqual(await client.goaway(), CODE.none);
    assert.ok(await server.isServing());
  });

  test("a frame of 100 settings ends it", async (context) => {
    const server = await startSecure(context);
    const settings = Buffer.concat(Array.from({ length: 100 }, () => setting(4, 65_535)));
    const client = await server.frames({ settings });
    assert.notEqual(await client.goaway(), CODE.none);
  });

  test("a head in too many parts ends it", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    client.write(frame(FRAME.headers, FLAG.endStream, 1, requestHeaders("GET", "/v1/stream/a")));
    for (let count = 0; count < 20_000; count += 1) client.write(frame(FRAME.continuation, 0, 1, headerBlock([["x", "y"]])));
    assert.notEqual(await client.goaway(), CODE.none);
    assert.ok(await server.isServing());
  });
});

/** Resolves when the server has read all that was written so far; rejects where it has ended the connection. */
async function allRead(client: FrameConnection, round = 0): Promise<void> {
  const payload = Buffer.alloc(8, round);
  client.write(frame(FRAME.ping, 0, 0, payload));
  await client.frame((each) => each.type === FRAME.ping && each.flags === FLAG.ack && each.payload.equals(payload));
}

function brokenOff(id: number): Buffer {
  return Buffer.concat([frame(FRAME.headers, GET, id, OPEN_READ), frame(FRAME.reset, 0, id, uint32(CODE.cancel))]);
}

describe("streams of HTTP/2 that are broken off", () => {
  /** A new connection with 500 of them. */
  async function breakOff(server: SecureServer, count = 500): Promise<void> {
    const client = await server.frames({ settings: setting(4, 0) });
    client.write(...ids(count).map(brokenOff));
    await allRead(client);
  }

  test("count for the client, however often it connects, and not for its connections that break off few", async (context) => {
    const server = await startSecure(context);
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
    for (let round = 0; round < 2; round += 1) await breakOff(server);
    for (let round = 0; round < 2; round += 1) await assert.rejects(breakOff(server), /the connection ended/);
    await breakOff(server, 30);
    server.test.clock.advance(1_000);
    await breakOff(server);
  });

  test("do not count for a trusted proxy, but for each of its connections", async (context) => {
    const server = await startSecure(context, { trustProxy: "127.0.0.1" });
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
    for (let round = 0; round < 5; round += 1) await breakOff(server);
    await assert.rejects(breakOff(server, 600), /the connection ended/);
  });

  test("in the packet that has opened them are not served, but for the first ones", async (context) => {
    const server = await startSecure(context);
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
    const client = await server.frames({ settings: setting(4, 0) });
    await allRead(client);
    const serve = context.mock.method(Dispatcher.prototype, "handleStream");
    client.write(...ids(100).map(brokenOff));
    await allRead(client, 1);
    // 33 until there are many, and 16 in a turn after that.
    assert.equal(serve.mock.callCount(), 33 + 16);
  });

  test("count where Node does not show them, as their heads are too large", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    // `accept-encoding`, again and again, by its number in HPACK's table.
    const head = Buffer.concat([requestHeaders("GET", "/health"), Buffer.alloc(150, 0x90)]);
    const all = ids(600);
    for (let at = 0; at < all.length; at += 50) {
      const some = all.slice(at, at + 50);
      client.write(...some.map((id) => frame(FRAME.headers, GET, id, head)));
      for (const id of some) await client.reset(id);
    }
    server.test.clock.advance(5_000);
    await assert.rejects(allRead(client), /the connection ended/);
    assert.ok(await server.isServing());
  });
});

test("a hundred requests of one packet are all answered, in their order", async (context) => {
  const server = await startSecure(context);
  const client = await server.frames();
  client.write(...ids(100).map((id) => frame(FRAME.headers, GET, id, requestHeaders("GET", "/health"))));
  await client.frame(({ type, stream }) => type === FRAME.headers && stream === 199);
  const answered = client.frames.filter(({ type }) => type === FRAME.headers).map(({ stream }) => stream);
  assert.deepEqual(answered, ids(100));
});

describe("a connection of HTTP/2 that takes too long is ended:", () => {
  test("who says nothing after the handshake is cut after 20 s", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames({ greets: false });
    await server.test.clock.armed(5_000);
    server.test.clock.advance(19_000);
    assert.equal(client.socket.destroyed, false);
    server.test.clock.advance(6_000);
    await client.ended();
  });

  test("an idle one is said goodbye to after 75 s", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "GET", "/health");
    const gone = once(session, "goaway");
    server.test.clock.advance(74_000);
    server.test.clock.advance(6_000);
    assert.equal((await gone)[0], CODE.none);
  });

  test("one with an open stream is not idle", async (context) => {
    const server = await startSecure(context, { sseLifetimeMs: 3_600_000 });
    const session = server.session();
    await ask(session, "PUT", "a", { headers: { "content-type": "text/plain" } });
    const stream = session.request({ ":path": "/v1/stream/a?offset=now&live=sse" });
    await once(stream, "response");
    for (let round = 0; round < 40; round += 1) server.test.clock.advance(5_000);
    assert.equal((await ask(session, "GET", "/health")).status, 200);
    assert.equal(stream.closed, false);
    stream.close();
  });

  test("a body that is not there after 120 s is not waited for", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    const stream = session.request({ ":method": "POST", ":path": "/v1/stream/a", "content-type": "text/plain" }, { endStream: false });
    stream.write("part");
    stream.on("error", () => undefined);
    const closed = once(stream, "close");
    await ask(session, "GET", "/health");
    for (let round = 0; round < 26; round += 1) server.test.clock.advance(5_000);
    await closed;
    assert.equal(stream.rstCode, CODE.cancel);
    assert.equal((await ask(session, "GET", "/health")).status, 200);
  });

  for (const [method, flags, what] of [
    ["GET", GET, ""],
    ["POST", FLAG.endHeaders, ", also where the rest of that does not come"],
  ] as const)
    test(`an answer that gets no window keeps nothing of what its client has sent${what}`, async (context) => {
      const server = await startSecure(context);
      await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" } });
      const client = await server.frames({ settings: setting(4, 0) });
      const forget = context.mock.method(StreamRequest.prototype, "forgetHeaders");
      const refused = requestHeaders(method, "/v1/stream/missing", [["producer-id", "p"]]);
      client.write(...ids(20).map((id) => frame(FRAME.headers, flags, id, refused)));
      await client.frame(({ type, stream }) => type === FRAME.headers && stream === 39);
      assert.equal(forget.mock.callCount(), 20);
      for (let round = 0; round < 70; round += 1) server.test.clock.advance(1_000);
      assert.equal(await client.reset(39), CODE.cancel);
    });

  test("an answer that is taken slowly is not cut", async (context) => {
    const server = await startSecure(context);
    const body = "x".repeat(512 * 1024);
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" }, body });
    const client = await server.frames({ settings: setting(4, 0) });
    client.write(frame(FRAME.headers, GET, 1, requestHeaders("GET", "/v1/stream/a?offset=-1")));
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 1);
    const dataBytes = (): number =>
      client.frames.filter(({ type, stream }) => type === FRAME.data && stream === 1).reduce((sum, { payload }) => sum + payload.length, 0);
    for (let wanted = WINDOW; wanted <= body.length; wanted += WINDOW) {
      for (let second = 0; second < 40; second += 1) server.test.clock.advance(1_000);
      for (const stream of [0, 1]) client.write(frame(FRAME.window, 0, stream, uint32(WINDOW)));
      await client.frame(() => dataBytes() >= wanted);
    }
    assert.equal(dataBytes(), body.length);
  });

  test("an answer that gets no window is cut after a minute, and others on the connection are served", async (context) => {
    const server = await startSecure(context);
    const body = "x".repeat(512 * 1024);
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" }, body });
    const client = await server.frames({ settings: setting(4, 0) });
    client.write(...ids(20).map((id) => frame(FRAME.headers, GET, id, requestHeaders("GET", "/v1/stream/a?offset=-1"))));
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 39);
    for (let round = 0; round < 62; round += 1) server.test.clock.advance(1_000);
    assert.equal(await client.reset(1), CODE.cancel);
    client.write(frame(FRAME.headers, GET, 101, requestHeaders("HEAD", "/v1/stream/a")));
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 101);
    assert.ok(await server.isServing());
  });
});

describe("who goes while Node writes is noticed in seconds:", () => {
  const MANY = frame(FRAME.window, 0, 0, uint32(2 ** 30));
  const PART = frame(FRAME.data, 0, 1, Buffer.alloc(16_000, "a"));
  const POST = requestHeaders("POST", "/v1/stream/a", [["content-type", "text/plain"]]);
  const CATCH_UP = requestHeaders("GET", "/v1/stream/a?offset=-1");
  const cases: readonly (readonly [string, readonly Buffer[], (client: FrameConnection) => unknown])[] = [
    ["in the middle of a body", [frame(FRAME.headers, FLAG.endHeaders, 1, POST), PART, PART, PART], ({ tcp }) => tcp.resetAndDestroy()],
    [
      "in the middle of what an SSE read catches up with",
      [MANY, frame(FRAME.headers, GET, 1, OPEN_READ)],
      ({ socket }) => socket.destroy(),
    ],
    ["in the middle of an answer", [MANY, frame(FRAME.headers, GET, 1, CATCH_UP)], ({ socket }) => socket.destroy()],
  ];
  for (const [title, requests, go] of cases)
    test(title, async (context) => {
      const server = await startSecure(context, { sseLifetimeMs: 3_600_000 });
      const owner = server.session();
      await ask(owner, "PUT", "a", { headers: { "content-type": "text/plain" }, body: "x".repeat(4_000_000) });
      owner.destroy();
      await until(() => openConnections([server.test.port]).length === 0);
      for (let round = 0; round < 10; round += 1) {
        const client = await server.frames({ settings: setting(4, 2 ** 30) });
        client.write(...requests);
        await new Promise<void>((resolve) => setImmediate(resolve));
        go(client);
        await once(client.tcp, "close");
      }
      for (let looks = 0; looks < 4; looks += 1) {
        for (let turns = 0; turns < 50; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
        server.test.clock.advance(5_000);
      }
      await until(() => openConnections([server.test.port]).length === 0);
    });
});

describe("a server that stops", () => {
  /** More, in five answers, than the system takes of a connection. */
  const BODY = "x".repeat(4 * 1024 * 1024);
  const READS = ids(5);
  const ALL_BYTES = READS.length * BODY.length;

  /** A server, and a client that has begun to read of it, with a window of so many bytes for each answer. */
  async function startReading(
    context: TestContext,
    windowBytes: number,
  ): Promise<{ readonly server: SecureServer; readonly client: FrameConnection }> {
    const server = await startSecure(context, { shutdownTimeoutMs: 3_600_000 });
    await ask(server.session(), "PUT", "a", { headers: { "content-type": "text/plain" }, body: BODY });
    const client = await server.frames({ settings: setting(4, windowBytes) });
    client.tcp.allowHalfOpen = client.socket.allowHalfOpen = true;
    client.write(frame(FRAME.window, 0, 0, uint32(2 * ALL_BYTES)));
    client.write(...READS.map((id) => frame(FRAME.headers, GET, id, requestHeaders("GET", "/v1/stream/a?offset=-1"))));
    await client.frame(({ type }) => type === FRAME.headers);
    pause(client);
    return { server, client };
  }

  function pause({ socket, tcp }: FrameConnection): void {
    socket.pause();
    tcp.pause();
  }

  function resume({ socket, tcp }: FrameConnection): void {
    socket.resume();
    tcp.resume();
  }

  /** Waits for a stop, with `each` in every second until all connections are closed; returns how many those were. */
  async function secondsOfStop({ test }: SecureServer, stopped: Promise<void>, each: () => unknown = () => undefined): Promise<number> {
    let seconds = 0;
    for (; openConnections([test.port]).length > 0; seconds += 1) {
      await each();
      for (let turns = 0; turns < 20; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      test.clock.advance(1_000);
    }
    await stopped;
    return seconds;
  }

  test("finds out that a client has gone since it was told to", async (context) => {
    const { server, client } = await startReading(context, 2 * BODY.length);
    const stopped = server.test.server.close();
    for (let turns = 0; turns < 20; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    const gone = once(client.tcp, "close");
    client.tcp.resetAndDestroy();
    await gone;
    const seconds = await secondsOfStop(server, stopped);
    assert.ok(seconds < 20, `it took ${seconds} s`);
  });

  test("does not wait for a client that has ended its side and given no window", async (context) => {
    const { server, client } = await startReading(context, 0);
    const stopped = server.test.server.close();
    client.tcp.end();
    const seconds = await secondsOfStop(server, stopped);
    assert.ok(seconds < 20, `it took ${seconds} s`);
  });

  for (const [title, leave] of [
    ["", () => undefined],
    [", also where it has ended its side", (client: FrameConnection) => client.tcp.end()],
  ] as const)
    test(`sends a client that reads slowly its whole answers${title}`, async (context) => {
      const { server, client } = await startReading(context, 2 * BODY.length);
      const stopped = server.test.server.close();
      leave(client);
      const body = (): Frame[] => client.frames.filter(({ type }) => type === FRAME.data);
      const isWhole = (): boolean => body().filter(({ flags }) => (flags & FLAG.endStream) !== 0).length === READS.length;
      const seconds = await secondsOfStop(server, stopped, async () => {
        resume(client);
        for (let parts = 0; parts < 40 && !isWhole(); parts += 1) await once(client.socket, "data");
        if (isWhole()) client.close();
        else pause(client);
      });
      // The system may still have some of it.
      resume(client);
      while (!isWhole()) await once(client.socket, "data");
      assert.equal(
        body().reduce((sum, { payload }) => sum + payload.length, 0),
        ALL_BYTES,
      );
      assert.ok(seconds > 10, `it took ${seconds} s`);
    });

  test("says goodbye, finishes what is asked, and ends live reads between events", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: { "content-type": "text/plain" }, body: "x" });
    const stream = session.request({ ":path": "/v1/stream/a?offset=-1&live=sse" });
    let text = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await once(stream, "data");
    const [goaway, ended] = [once(session, "goaway"), once(stream, "end")];
    await server.test.server.close();
    assert.equal((await goaway)[0], CODE.none);
    await ended;
    assert.equal(stream.rstCode, CODE.none);
    assert.match(text, /\n\n$/);
  });
});
