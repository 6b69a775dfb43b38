import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { describe, test } from "node:test";
import { DirectRequest } from "../../../src/http/node/direct-request.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { createHandler } from "../../../src/server.js";
import { AcceptedSockets } from "../../helpers/accepted-sockets.js";
import { connectionTo } from "../../helpers/raw-connection.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { fileIn, flipBit } from "../../helpers/spoilt-files.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";
import { parseEventStream } from "../../protocol/event-stream-parser.js";

const TEXT = { "Content-Type": "text/plain" };

describe("an SSE reader", () => {
  test("whose client reads slowly gets everything, in order, at its pace", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const reader = await follow(server, "a?live=sse&offset=-1");
    await nextPair(reader);
    reader.socket.pause();
    const pieces = Array.from({ length: 64 }, (_, at) => String.fromCharCode(97 + (at % 26)).repeat(128 * 1024));
    for (const body of pieces) await server.send("POST", "a", { headers: TEXT, body });
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    reader.socket.resume();
    const events = parseEventStream(await reader.rest());
    assert.equal(
      events
        .filter(({ type }) => type === "data")
        .map(({ data }) => data)
        .join(""),
      pieces.join(""),
    );
    assert.equal(JSON.parse(events.at(-1)?.data ?? "").streamClosed, true);
  });
});

describe("the backlog of an SSE reader", () => {
  test("is sent nothing more once its connection is about to end, so that what waits is not lost", async (context) => {
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent" });
    const http = createHttpServer({ IncomingMessage: DirectRequest, ServerResponse: OwnResponse }, handler);
    const sockets: Socket[] = [];
    http.on("connection", (socket) => sockets.push(socket));
    const client = await connectionTo(context, http);
    context.after(() => handler.close());
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1/stream/a`; // it listens on a port
    await fetch(url, { method: "PUT", headers: TEXT });
    client.write("GET /v1/stream/a?live=sse&offset=-1 HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until("\n\n");
    const [socket] = sockets;
    assert.ok(socket !== undefined);
    const faults: Error[] = [];
    socket.on("error", (fault) => faults.push(fault));
    // As Node does where a client has ended its side.
    socket.end();
    await fetch(url, { method: "POST", headers: TEXT, body: "hello" });
    await fetch(url, { method: "POST", headers: TEXT, body: "there" });
    client.socket.end();
    assert.doesNotMatch(await client.rest(), /hello/);
    assert.deepEqual(faults, []);
  });

  test("comes in chunks, and only the last is up to date", async (context) => {
    const server = await startServer(context, { chunkBytes: 4 });
    await server.send("PUT", "a", { headers: TEXT, body: "abcdefghij" });
    const reader = await follow(server, "a?live=sse&offset=-1");
    const pairs = [await nextPair(reader), await nextPair(reader), await nextPair(reader)];
    assert.deepEqual(
      pairs.map(({ data }) => data),
      ["abcd", "efgh", "ij"],
    );
    assert.deepEqual(
      pairs.map(({ control }) => control["upToDate"]),
      [undefined, undefined, true],
    );
  });

  test("has an append of bytes in one event, however long it is, and so has who follows", async (context) => {
    const server = await startServer(context);
    const headers = { "Content-Type": "application/octet-stream" };
    const [before, after] = [Buffer.alloc(200_000, 1), Buffer.alloc(1_500_000, 2)];
    await server.send("PUT", "a", { headers, body: before });
    const reader = await follow(server, "a?live=sse&offset=-1");
    const next = async (): Promise<Buffer> => Buffer.from((await nextPair(reader)).data ?? "", "base64");
    assert.ok((await next()).equals(before));
    await server.send("POST", "a", { headers, body: after });
    assert.ok((await next()).equals(after));
  });

  test("of a long append leaves others their turn, however many ask for it at once", async (context) => {
    const server = await startServer(context);
    const headers = { "Content-Type": "application/octet-stream" };
    await server.send("PUT", "a", { headers, body: Buffer.alloc(8_000_000, 1) });
    await server.send("PUT", "b", { headers: TEXT, body: "b" });
    const accepted = new AcceptedSockets(context);
    const stranger = await server.connect();
    const readers = await Promise.all(Array.from({ length: 20 }, () => server.begin("GET", "b?offset=-1")));
    for (const reader of readers) assert.equal((await reader.answer()).text, "b");
    for (const reader of readers) reader.write(requestBytes("GET", "a?offset=-1&live=sse"));
    stranger.write(requestBytes("GET", "b?offset=-1"));
    assert.equal((await stranger.answer()).text, "b");
    const sent = readers.filter(({ socket }) => accepted.otherEndOf(socket).bytesWritten > 8_000_000);
    assert.ok(sent.length < 8, `${sent.length} readers were first`);
  });

  test("has an append of text up to the length of a chunk in one event, also of those that were there before", async (context) => {
    const server = await startServer(context, { chunkBytes: 300_000 });
    const [before, longer] = ["x".repeat(290_000), "y".repeat(310_000)];
    await server.send("PUT", "a", { headers: TEXT, body: before });
    await server.send("POST", "a", { headers: TEXT, body: longer });
    const reader = await follow(server, "a?live=sse&offset=-1");
    assert.equal((await nextPair(reader)).data, before);
    let rest = "";
    while (rest.length < longer.length) rest += (await nextPair(reader)).data ?? "";
    assert.equal(rest, longer);
  });

  test("has the rest of a character that an append before it began, also where it is longer than an event", async (context) => {
    const server = await startServer(context, { chunkBytes: 100_000 });
    const euro = Buffer.from("€");
    const lengths = [70_000, 150_000];
    for (const [at, length] of lengths.entries())
      for (const cut of [1, 2]) {
        const name = `${at}-${cut}`;
        const rest = Buffer.concat([euro.subarray(cut), Buffer.alloc(length, "x")]);
        await server.send("PUT", name, { headers: TEXT, body: euro.subarray(0, cut) });
        const live = await follow(server, `${name}?live=sse&offset=-1`);
        assert.equal((await nextPair(live)).data, null);
        await server.send("POST", name, { headers: TEXT, body: rest });
        for (const reader of [live, await follow(server, `${name}?live=sse&offset=-1`)]) {
          let text = "";
          while (text.length < euro.length + length) text += (await nextPair(reader)).data ?? "";
          assert.ok(Buffer.from(text, "latin1").toString() === `€${"x".repeat(length)}`);
          await reader.close();
        }
      }
  });

  test("says that it is at the tail, also where an append has ended within a character", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "x".repeat(70_000) });
    await server.send("POST", "a", { headers: TEXT, body: Buffer.from("€").subarray(0, 1) });
    const reader = await follow(server, "a?live=sse&offset=-1");
    const [first, second] = [await nextPair(reader), await nextPair(reader)];
    assert.deepEqual([first.data?.length, first.control["upToDate"]], [70_000, undefined]);
    assert.deepEqual([second.data, second.control["upToDate"]], [null, true]);
    await server.send("POST", "a", { headers: TEXT, body: Buffer.from("€").subarray(1) });
    assert.equal(Buffer.from((await nextPair(reader)).data ?? "", "latin1").toString(), "€");
  });

  test("ends with what can be read, where the rest of a character is damaged", async (context) => {
    const dir = tempDir();
    const first = await startServer(context, { dir, segmentBytes: 4096 });
    const [cut, rest] = [Buffer.concat([Buffer.alloc(4999, "x"), Buffer.from([0xe2])]), Buffer.alloc(5000, "y")];
    await first.send("PUT", "a", { headers: TEXT, body: cut });
    await first.send("POST", "a", { headers: TEXT, body: rest });
    await first.stop();
    flipBit(fileIn(dir, "5000.seg"), 100);
    const server = await startServer(context, { dir, segmentBytes: 4096 });
    const reader = await follow(server, "a?live=sse&offset=-1");
    assert.equal((await nextPair(reader)).data, "x".repeat(4999));
    const { data, control } = await nextPair(reader);
    assert.equal(Buffer.from(data ?? "", "latin1").toString(), "\uFFFD");
    assert.equal(await reader.rest(), "");
    const again = await server.send("GET", `a?live=sse&offset=${control.streamNextOffset}`);
    assert.equal(again.status, 500);
    assert.match(again.text, /stream-damaged/);
  });

  test("is not cut inside a character or a line end, however small the chunks", async (context) => {
    const server = await startServer(context, { chunkBytes: 1 });
    const text = "a€b\r\n\r\n🎈c\rd\n";
    await server.send("PUT", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: text });
    const reader = await follow(server, "a?live=sse&offset=-1");
    const events = parseEventStream(await reader.rest());
    const data = events.filter(({ type }) => type === "data").map((event) => Buffer.from(event.data, "latin1").toString());
    assert.equal(data.join(""), text.replaceAll("\r\n", "\n").replaceAll("\r", "\n"));
    for (const piece of data) assert.doesNotMatch(piece, /\uFFFD/);
  });
});
