import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { heldBy, writeChunk } from "../../../src/http/reading/sse-chunks.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { FakeResponse, MAX_UNREAD_BYTES, Room } from "../../helpers/sse-room.js";
import { startServer } from "../../helpers/test-server.js";

/** An answer of a server of ours over HTTP/1.1. */
function ownResponse(): FakeResponse {
  const response = new FakeResponse();
  const own = Object.assign(response, { takeChunks: () => true, forgetHead: () => undefined, req: { socket: response } });
  return new Proxy(own, { getPrototypeOf: () => OwnResponse.prototype });
}

const TEXT = { "Content-Type": "text/plain" };

/** A socket that keeps what is written to it. */
function socketOf(hasRoom: boolean) {
  const written: Buffer[] = [];
  const write = (bytes: Buffer): boolean => {
    written.push(bytes);
    return hasRoom;
  };
  return { socket: { write }, written };
}

test("events are a chunk in the same memory for all who are sent them", () => {
  const events = Buffer.from("event: data\ndata:one\n\n");
  const { socket, written } = socketOf(true);
  for (let reader = 0; reader < 3; reader += 1) assert.equal(writeChunk(socket, events), true);
  assert.equal(String(written[0]), "16\r\nevent: data\ndata:one\n\n\r\n");
  assert.deepEqual(new Set([...written, heldBy(events)]).size, 1);
});

test("long events are not copied: their frame is around them", () => {
  const events = Buffer.alloc(256 * 1024 + 1, "x");
  const { socket, written } = socketOf(false);
  assert.equal(writeChunk(socket, events), false);
  assert.deepEqual([String(written[0]), written[1] === events, String(written[2])], ["40001\r\n", true, "\r\n"]);
  assert.equal(heldBy(events), events);
});

test("readers that share a chunk are let in where there is no room for another one", async () => {
  const room = new Room();
  const destroyed: FakeResponse[] = [];
  const stall = async (): Promise<FakeResponse> => {
    const response = ownResponse();
    response.on("destroyed", () => void destroyed.push(response));
    await room.join({ response });
    response.isFull = true;
    return response;
  };
  const append = (): void => room.stream.append("x".repeat(200 * 1024));
  for (let at = 0; at < 19; at += 1) {
    await stall();
    append();
  }
  const heldBytes = room.unread.bytes;
  const readers = [await stall(), await stall(), await stall()];
  append();
  const [chunk = Buffer.alloc(0), ...others] = readers.map(({ written }) => written.at(-1));
  assert.deepEqual(others, [chunk, chunk]);
  assert.match(chunk.toString("latin1", 0, 30), /^[0-9a-f]+\r\nevent: data\ndata:x/);
  assert.deepEqual([destroyed.length, room.unread.bytes], [0, heldBytes + chunk.length]);
  assert.ok(MAX_UNREAD_BYTES - room.unread.bytes < chunk.length, "another one would have no room");
});

describe("an event stream", () => {
  for (const [version, lastChunk] of [
    ["1.1", "0\r\n\r\n"],
    ["1.0", ""],
  ] as const)
    test(`over HTTP/${version} ends with ${lastChunk === "" ? "its connection" : "a last chunk, and its connection"}`, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "a", { headers: TEXT, body: "one" });
      const reader = await server.connect();
      reader.write(`GET /v1/stream/a?live=sse&offset=-1 HTTP/${version}\r\nHost: a\r\n\r\n`);
      const head = await reader.until("\r\n\r\n");
      assert.equal(/^transfer-encoding: chunked\r$/im.test(head), lastChunk !== "");
      assert.match(head, /^connection: close\r$/im);
      await reader.until('"upToDate":true}\n');
      await server.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "x".repeat(300_000) });
      const rest = await reader.rest();
      assert.ok(rest.endsWith(`\n\n${lastChunk === "" ? "" : `\r\n${lastChunk}`}`), JSON.stringify(rest.slice(-50)));
    });
});
