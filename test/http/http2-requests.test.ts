import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, test } from "node:test";
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
} from "../helpers/frames.js";
import { ask, startSecure } from "../helpers/secure-server.js";

const TEXT = { "content-type": "text/plain" };
const PART = Buffer.alloc(16_384);

/** Node 20 hides headers whose values begin or end with a blank. */
const hidesBlanks = process.versions.node.startsWith("20.");

function codeOf(body: string): string {
  return (JSON.parse(body) as { code: string }).code; // every problem document has one
}

describe("over HTTP/2", () => {
  test("a stream lives as over HTTP/1.1", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    const made = await ask(session, "PUT", "a", { headers: TEXT, body: "one" });
    assert.deepEqual([made.status, made.headers["location"]], [201, `https://127.0.0.1:${server.test.port}/v1/stream/a`]);
    assert.equal((await ask(session, "POST", "a", { headers: TEXT, body: "two" })).status, 204);
    const read = await ask(session, "GET", "a?offset=-1");
    assert.deepEqual([read.status, read.body, read.headers["content-length"]], [200, "onetwo", "6"]);
    assert.equal((await ask(session, "GET", "a?offset=-1", { headers: { "if-none-match": String(read.headers["etag"]) } })).status, 304);
    const head = await ask(session, "HEAD", "a");
    assert.deepEqual([head.status, head.body, head.headers["stream-next-offset"]], [200, "", read.headers["stream-next-offset"]]);
    assert.equal((await ask(session, "DELETE", "a")).status, 204);
    assert.equal((await ask(session, "GET", "a")).status, 404);
    assert.deepEqual(server.test.faults, []);
  });

  test("a condition with a blank after it counts as over HTTP/1.1", { skip: hidesBlanks }, async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT, body: "one" });
    const condition = { "if-match": '"0000000000000000_0000000000000000" ' };
    const refused = await ask(session, "POST", "a", { headers: { ...TEXT, ...condition }, body: "two" });
    assert.deepEqual([refused.status, codeOf(refused.body)], [412, "tail-moved"]);
    assert.equal((await ask(session, "POST", "a", { headers: { "stream-closed": "true " } })).headers["stream-closed"], "true");
  });

  test("a large body arrives whole, and so does a large answer", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    const body = Buffer.alloc(3 * 1024 * 1024, "0123456789");
    await ask(session, "PUT", "a", { headers: { "content-type": "application/octet-stream" }, body });
    let text = "";
    for (let offset = "-1"; ;) {
      const read = await ask(session, "GET", `a?offset=${offset}`);
      text += read.body;
      offset = String(read.headers["stream-next-offset"]);
      if (read.headers["stream-up-to-date"] !== undefined) break;
    }
    assert.ok(text === body.toString());
  });

  test("a body may come without its length, and in pieces", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const stream = session.request({ ":method": "POST", ":path": "/v1/stream/a", ...TEXT }, { endStream: false });
    for (const piece of ["one,", "two,", "three"]) {
      stream.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    stream.end();
    const [response] = (await once(stream, "response")) as [Record<string, unknown>]; // the event's argument
    assert.equal(response[":status"], 204);
    assert.equal((await ask(session, "GET", "a?offset=-1")).body, "one,two,three");
  });

  test("a refusal comes before the body has, and the rest of it is not read", async (context) => {
    const server = await startSecure(context, { maxAppendBytes: 1024 });
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const stream = session.request(
      { ":method": "POST", ":path": "/v1/stream/a", ...TEXT, "content-length": "100000" },
      { endStream: false },
    );
    stream.on("error", () => undefined).resume();
    const closed = once(stream, "close");
    const [response] = (await once(stream, "response")) as [Record<string, unknown>]; // the event's argument
    assert.equal(response[":status"], 413);
    await closed;
    assert.equal(stream.rstCode, CODE.none);
    assert.equal((await ask(session, "GET", "a?offset=-1")).body, "");
  });

  test("trailers are ignored, and what a request has no use for is not waited for", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const post = { ":method": "POST", ":path": "/v1/stream/a", ...TEXT };
    const trailing = session.request(post, { endStream: false, waitForTrailers: true });
    trailing.on("wantTrailers", () => trailing.sendTrailers({ "x-after": "1" })).resume();
    trailing.end("x");
    assert.equal(((await once(trailing, "response")) as [Record<string, unknown>])[0][":status"], 204);
    for (const [method, path, status] of [
      ["HEAD", "/nowhere", 404],
      ["GET", "/v1/stream/a?offset=-1", 200],
      ["DELETE", "/v1/stream/a", 204],
    ] as const) {
      const stream = session.request({ ":method": method, ":path": path }, { endStream: false });
      stream.on("error", () => undefined).resume();
      const closed = once(stream, "close");
      stream.write("a part");
      assert.equal(((await once(stream, "response")) as [Record<string, unknown>])[0][":status"], status);
      await closed;
      assert.equal(stream.rstCode, CODE.none);
    }
  });

  test("a body that nobody reads is dropped as it comes, up to a bound", async (context) => {
    const server = await startSecure(context);
    await ask(server.session(), "PUT", "a", { headers: TEXT });
    const client = await server.frames();
    const stream = 1;
    client.write(frame(FRAME.headers, FLAG.endHeaders, stream, requestHeaders("GET", "/v1/stream/a?offset=now&live=sse")));
    await client.frame((each) => each.type === FRAME.headers && each.stream === stream);
    const isReset = (each: Frame): boolean => each.type === FRAME.reset && each.stream === stream;
    let sentBytes = 0;
    const granted = (of: number): number =>
      client.frames
        .filter((each) => each.type === FRAME.window && each.stream === of)
        .reduce((sum, each) => sum + each.payload.readUInt32BE(0), 0);
    // What a connection and a stream may have on their way at first.
    const hasRoom = (): boolean => Math.min(65_535 + granted(0), 256 * 1024 + granted(stream)) - sentBytes >= PART.length;
    for (; !client.frames.some(isReset); sentBytes += PART.length) {
      client.write(frame(FRAME.data, 0, stream, PART));
      await client.frame((each) => isReset(each) || hasRoom());
    }
    assert.deepEqual([await client.reset(stream), sentBytes > 1024 * 1024], [CODE.cancel, true]);
  });

  test("a client that ends its side in the middle of a body is not waited for", async (context) => {
    const server = await startSecure(context);
    await ask(server.session(), "PUT", "a", { headers: TEXT });
    const client = await server.frames();
    client.write(
      frame(FRAME.headers, FLAG.endHeaders, 1, requestHeaders("POST", "/v1/stream/a", [["content-type", "text/plain"]])),
      frame(FRAME.data, 0, 1, Buffer.from("part")),
    );
    client.socket.end();
    await client.ended();
    assert.equal((await ask(server.session(), "GET", "a?offset=-1")).body, "");
  });

  test("a client whose connection is reset is not waited for when the server stops", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    const head = headerBlock([
      [":method", "CONNECT"],
      [":authority", "localhost:1"],
    ]);
    client.write(frame(FRAME.headers, FLAG.endHeaders, 1, head));
    await client.frame(({ type, stream, flags }) => type === FRAME.data && stream === 1 && (flags & FLAG.endStream) !== 0);
    client.tcp.resetAndDestroy();
    await server.test.stop();
  });

  test("clients that go in the middle of several answers are not waited for when the server stops", async (context) => {
    const server = await startSecure(context);
    const head = headerBlock([
      [":method", "CONNECT"],
      [":authority", "localhost:1"],
    ]);
    const requests = [1, 3, 5, 7, 9].map((stream) => frame(FRAME.headers, FLAG.endHeaders, stream, head));
    const clients = await Promise.all(Array.from({ length: 20 }, () => server.frames()));
    const go = async (client: FrameConnection): Promise<void> => {
      client.write(...requests);
      await client.frame(({ type, stream, flags }) => type === FRAME.data && stream === 1 && (flags & FLAG.endStream) !== 0);
      client.close();
    };
    await Promise.all(clients.map(go));
    await server.test.stop();
  });

  test("a client that says goodbye while its answer runs has the connection until it ends it", async (context) => {
    const server = await startSecure(context);
    const accepted: Socket[] = [];
    const note = (message: unknown): void => void accepted.push((message as { socket: Socket }).socket); // as Node documents it
    subscribe("net.server.socket", note);
    const client = await server.frames();
    unsubscribe("net.server.socket", note);
    const socket = accepted.find(({ remotePort }) => remotePort === client.tcp.localPort);
    assert.ok(socket !== undefined);
    client.tcp.allowHalfOpen = client.socket.allowHalfOpen = true;
    const ended = once(client.socket, "end");
    client.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, requestHeaders("GET", "/v1/stream/a")));
    client.write(frame(FRAME.goaway, 0, 0, Buffer.concat([uint32(0), uint32(CODE.none)])));
    await ended;
    assert.ok(client.frames.some(({ stream, flags }) => stream === 1 && (flags & FLAG.endStream) !== 0));
    for (let turns = 0; turns < 20; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    assert.equal(socket.destroyed, false);
    client.close();
    await server.test.stop();
  });

  test("a stream that its client resets without an error, with its answer on the way, is not waited for", async (context) => {
    const server = await startSecure(context);
    // A window of zero: the answer's body has to wait.
    const client = await server.frames({ settings: setting(4, 0) });
    const head = requestHeaders("GET", "/v1/stream/a");
    client.write(frame(FRAME.headers, FLAG.endHeaders, 1, head));
    await client.frame(({ type, stream }) => type === FRAME.headers && stream === 1);
    client.write(frame(FRAME.reset, 0, 1, uint32(CODE.none)), frame(FRAME.ping, 0, 0, Buffer.alloc(8)));
    await client.frame(({ type }) => type === FRAME.ping);
    await server.test.stop();
  });

  // By frames: Node's own client ends the body that it breaks off, and then it is whole.
  for (const [title, code] of [
    ["gives it up", CODE.cancel],
    ["has a fault", CODE.internal],
    ["says that all is well", CODE.none],
  ] as const)
    test(`a client that breaks off its body and ${title} leaves nothing behind`, async (context) => {
      const server = await startSecure(context);
      const session = server.session();
      await ask(session, "PUT", "a", { headers: TEXT });
      const client = await server.frames();
      const answered = (stream: number) => client.frame((each) => each.type === FRAME.headers && each.stream === stream);
      const get = requestHeaders("GET", "/health");
      const post = requestHeaders("POST", "/v1/stream/a", [["content-type", "text/plain"]]);
      client.write(frame(FRAME.headers, FLAG.endHeaders, 1, post), frame(FRAME.data, 0, 1, Buffer.from("part")));
      client.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 3, get));
      await answered(3);
      client.write(frame(FRAME.reset, 0, 1, uint32(code)), frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 5, get));
      await answered(5);
      assert.equal((await ask(session, "POST", "a", { headers: TEXT, body: "later" })).status, 204);
      assert.equal((await ask(session, "GET", "a?offset=-1")).body, "later");
    });

  test("100-continue asks for the body, and other expectations are refused", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const headers = { ":method": "POST", ":path": "/v1/stream/a", ...TEXT, expect: "100-continue" };
    const stream = session.request(headers, { endStream: false });
    await once(stream, "continue");
    stream.end("x");
    const [response] = (await once(stream, "response")) as [Record<string, unknown>]; // the event's argument
    assert.equal(response[":status"], 204);
    const other = await ask(session, "POST", "a", { headers: { ...TEXT, expect: "a miracle" }, body: "x" });
    assert.deepEqual([other.status, codeOf(other.body)], [417, "expectation-failed"]);
  });

  test("a live read gets each event as it is appended, and long-polls their answer", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const stream = session.request({ ":path": "/v1/stream/a?offset=now&live=sse" });
    let text = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await once(stream, "data");
    const poll = ask(session, "GET", "a?offset=now&live=long-poll");
    await ask(session, "GET", "/health");
    await ask(session, "POST", "a", { headers: TEXT, body: "hello" });
    assert.equal((await poll).body, "hello");
    while (!text.includes("data:hello\n")) await once(stream, "data");
    const large = "y".repeat(200 * 1024);
    await ask(session, "POST", "a", { headers: TEXT, body: large });
    while (!text.includes(`data:${large}\n`)) await once(stream, "data");
    stream.close(CODE.cancel);
    await once(stream, "close");
    assert.equal((await ask(session, "GET", "/health")).status, 200);
  });

  test("CONNECT is refused", async (context) => {
    const server = await startSecure(context);
    const client = await server.frames();
    client.write(
      frame(
        FRAME.headers,
        FLAG.endHeaders,
        1,
        headerBlock([
          [":method", "CONNECT"],
          [":authority", "localhost:1"],
        ]),
      ),
    );
    const { payload } = await client.frame(({ type, stream }) => type === FRAME.headers && stream === 1);
    assert.ok(payload.length > 0);
    await client.frame(({ type, stream, flags }) => type === FRAME.data && stream === 1 && (flags & FLAG.endStream) !== 0);
  });

  test("Host and :authority must be the same", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    const differing = await ask(session, "GET", "a", { headers: { ":authority": "one.example", host: "two.example" } });
    assert.deepEqual([differing.status, codeOf(differing.body)], [400, "bad-request"]);
    assert.equal((await ask(session, "GET", "a", { headers: { ":authority": "one.example", host: "one.example" } })).status, 404);
  });

  test("a client that says goodbye keeps its live reads until it ends them", async (context) => {
    const server = await startSecure(context);
    const session = server.session();
    await ask(session, "PUT", "a", { headers: TEXT });
    const stream = session.request({ ":path": "/v1/stream/a?offset=now&live=sse" });
    await once(stream, "response");
    const closed = once(session, "close");
    session.close();
    const chunk = once(stream, "data");
    await ask(server.session(), "POST", "a", { headers: TEXT, body: "x" });
    await chunk;
    stream.close(CODE.cancel);
    await closed;
  });
});
