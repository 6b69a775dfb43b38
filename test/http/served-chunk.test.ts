import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { answerChunk, serve, type ReaderOptions, type ServedChunk } from "../../src/http/served-chunk.js";
import type { Stream } from "../../src/stream/stream.js";
import { startExchanges, type StreamParts } from "../helpers/exchange-server.js";
import type { Answer } from "../helpers/raw-connection.js";

const MANY_BYTES = 1024;

function token(byte: number): string {
  return `0000000000000000_${String(byte).padStart(16, "0")}`;
}

function asRecord(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, at) => flat.slice(2 * at, 2 * at + 2)));
}

interface Served {
  readonly stream: Stream;
  readonly chunk: ServedChunk;
}

/** A chunk of a new stream. */
async function served(t: TestContext, parts: StreamParts, { from = 0, maxBytes = MANY_BYTES, later = 0 } = {}): Promise<Served> {
  const server = await startExchanges(t);
  const stream = await server.stream("s", parts);
  return { stream, chunk: serve(stream, await stream.read(from, maxBytes), server.clock.nowMs() + later) };
}

describe("a chunk is served with where the reader stands after it", () => {
  const PLACES: Readonly<Record<string, readonly [parts: StreamParts, range: { from?: number; maxBytes?: number }, from: number, to: number, place: Readonly<Record<string, string>>]>> = {
    "all there is": [{ body: "12345" }, {}, 0, 5, { "Stream-Up-To-Date": "true" }],
    "the beginning": [{ body: "12345" }, { maxBytes: 2 }, 0, 2, {}],
    "the end": [{ body: "12345" }, { from: 2 }, 2, 5, { "Stream-Up-To-Date": "true" }],
    "nothing, at the tail": [{ body: "12345" }, { from: 5 }, 5, 5, { "Stream-Up-To-Date": "true" }],
    "nothing, of an empty stream": [{}, {}, 0, 0, { "Stream-Up-To-Date": "true" }],
    "all of a closed stream": [{ body: "12345", closed: true }, {}, 0, 5, { "Stream-Up-To-Date": "true", "Stream-Closed": "true" }],
    "the beginning of a closed stream": [{ body: "12345", closed: true }, { maxBytes: 2 }, 0, 2, {}],
  };
  for (const [title, [parts, range, from, to, place]] of Object.entries(PLACES)) {
    test(title, async (t) => {
      const { stream, chunk } = await served(t, parts, range);
      assert.deepEqual(asRecord(chunk.placeHeaders), { "Stream-Next-Offset": token(to), ...place });
      assert.equal(chunk.etag, `"${stream.id}:${token(from)}:${token(to)}${"Stream-Closed" in place ? ":closed" : ""}"`);
      assert.equal(chunk.body.toString(), String(parts.body ?? "").slice(from, to));
    });
  }
});

describe("a chunk of a JSON stream is one array", () => {
  const BODIES: Readonly<Record<string, readonly [body: string, from: number, expected: string]>> = {
    "of all messages": ['[{"a":1}, 2 ,"x"]', 0, '[{"a":1},\n2,\n"x"]'],
    "of the last messages": ['[1,2,3]', 3, "[2,\n3]"],
    "of nothing": ["[1]", 3, "[]"],
    "as it was written": ["[12345678901234567890,1e400,1.0]", 0, "[12345678901234567890,\n1e400,\n1.0]"],
  };
  for (const [title, [body, from, expected]] of Object.entries(BODIES)) {
    test(title, async (t) => {
      const { chunk } = await served(t, { contentType: "application/json; charset=utf-8", body }, { from });
      assert.equal(chunk.body.toString(), expected);
      assert.equal(chunk.contentType, "application/json; charset=utf-8");
    });
  }
});

test("a chunk knows how long its stream lives", async (t) => {
  assert.equal((await served(t, {})).chunk.remainingMs, null);
  assert.equal((await served(t, { ttlSeconds: 10 }, { later: 3_000 })).chunk.remainingMs, 7_000);
  assert.equal((await served(t, { ttlSeconds: 10 }, { later: 13_000 })).chunk.remainingMs, 0);
});

const CHUNK: ServedChunk = {
  contentType: "text/plain;charset=x",
  body: Buffer.from("12345"),
  etag: '"id:0:5"',
  remainingMs: null,
  placeHeaders: ["Stream-Next-Offset", "0_5", "Stream-Up-To-Date", "true"],
};
const CATCH_UP: ReaderOptions = { cursor: null, fromNow: false };
const PLACE = { "stream-next-offset": "0_5", "stream-up-to-date": "true" };
const BODY = { "content-type": "text/plain;charset=x", "content-length": "5" };
const CACHED = { etag: '"id:0:5"', "cache-control": "public, max-age=60, stale-while-revalidate=300" };
const COMPARED = ["stream-next-offset", "stream-up-to-date", "stream-cursor", "content-type", "content-length", "etag", "cache-control"];

describe("a reader's answer", () => {
  const ANSWERS: readonly (readonly [title: string, headers: Readonly<Record<string, string>>, more: Partial<ServedChunk & ReaderOptions>, status: number, expected: Readonly<Record<string, string>>])[] = [
    ["is the chunk", {}, {}, 200, { ...PLACE, ...BODY, ...CACHED }],
    ["has a live reader's cursor", {}, { cursor: "7" }, 200, { ...PLACE, ...BODY, ...CACHED, "stream-cursor": "7" }],
    ["is for one reader when it was asked for with a credential", { Authorization: "Bearer x" }, {}, 200, { ...PLACE, ...BODY, ...CACHED, "cache-control": "private, max-age=60, stale-while-revalidate=300" }],
    ["is cached no longer than the stream lives", {}, { remainingMs: 5_999 }, 200, { ...PLACE, ...BODY, ...CACHED, "cache-control": "public, max-age=5" }],
    ["from now is not cached", {}, { fromNow: true }, 200, { ...PLACE, ...BODY, "cache-control": "no-store" }],
    ["from now is never known already", { "If-None-Match": "*" }, { fromNow: true }, 200, { ...PLACE, ...BODY, "cache-control": "no-store" }],
    ["with no bytes has the length 0", {}, { body: Buffer.alloc(0) }, 200, { ...PLACE, ...BODY, ...CACHED, "content-length": "0" }],
    ["is the chunk when another one is known", { "If-None-Match": '"id:0:4"' }, {}, 200, { ...PLACE, ...BODY, ...CACHED }],
    ["is 304 when the chunk is known", { "If-None-Match": '"id:0:5"' }, {}, 304, { ...PLACE, ...CACHED }],
    ["is 304 when the chunk is one of those known", { "If-None-Match": '"x", W/"id:0:5"' }, { cursor: "7" }, 304, { ...PLACE, ...CACHED, "stream-cursor": "7" }],
  ];
  for (const [title, headers, { cursor = CATCH_UP.cursor, fromNow = CATCH_UP.fromNow, ...more }, status, expected] of ANSWERS) {
    test(title, async (t) => {
      const server = await startExchanges(t);
      const { connection, exchange } = await server.receive("GET", "s", { headers });
      const chunk = { ...CHUNK, ...more };
      answerChunk(server.context, exchange, chunk, { cursor, fromNow });
      const answer: Answer = await connection.answer();
      assert.equal(answer.status, status);
      assert.deepEqual(Object.fromEntries(Object.entries(answer.headers).filter(([name]) => COMPARED.includes(name))), expected);
      assert.deepEqual(answer.body, status === 200 ? chunk.body : Buffer.alloc(0));
    });
  }

  test("leaves the chunk as it is for the next reader", async (t) => {
    const server = await startExchanges(t);
    const placeHeaders = [...CHUNK.placeHeaders];
    const { exchange } = await server.receive("GET", "s");
    answerChunk(server.context, exchange, CHUNK, { cursor: "7", fromNow: false });
    assert.deepEqual(CHUNK.placeHeaders, placeHeaders);
  });
});
