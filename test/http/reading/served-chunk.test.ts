import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";
import { answerChunk, serve, type Named } from "../../../src/http/reading/served-chunk.js";
import { ReadFreshness } from "../../../src/protocol/cache-control.js";
import type { Chunk, Stream } from "../../../src/stream/loaded/stream.js";

/** A stream whose tokens are its positions. */
function streamOf(contentType: string, remainingMs: number | null = null, ttl: object | null = null): Stream {
  const fake = {
    id: "id",
    config: { contentType },
    isJson: contentType === "application/json",
    offsetAt: (position: number) => `@${position}`,
    remainingMs: () => remainingMs,
    ttl,
  };
  return fake as unknown as Stream; // all that serving asks of one
}

function chunkOf(text: string, more: Partial<Chunk> = {}): Chunk {
  const bytes = Buffer.from(text);
  return { kind: "chunk", from: 1, to: 1 + bytes.length, bytes, upToDate: true, closed: false, ...more };
}

/** What one reader is answered. */
function answerTo(headers: Record<string, string>, stream: Stream, chunk: Chunk, named: Named = "place", cursor: string | null = null) {
  const answers: { status: number; headers: Record<string, string>; body: Buffer | null }[] = [];
  const send = (_exchange: Exchange, status: number, flat: readonly string[], body: Buffer | null): void => {
    const record: Record<string, string> = {};
    for (let at = 0; at < flat.length; at += 2) record[flat[at] ?? ""] = flat[at + 1] ?? "";
    answers.push({ status, headers: record, body });
  };
  const exchange = { headers: readHeaders(Object.entries(headers).flat()) };
  // All that is asked of the two here.
  answerChunk(
    { responder: { send }, readFreshness: new ReadFreshness(60_000) } as unknown as Context,
    exchange as unknown as Exchange,
    serve(stream, chunk, 0),
    named,
    cursor,
  );
  const [answer] = answers;
  assert.ok(answer !== undefined);
  return answer;
}

describe("a chunk of a read is served", () => {
  test("with where it begins and ends", () => {
    const { status, headers, body } = answerTo({}, streamOf("text/plain"), chunkOf("abc"));
    assert.deepEqual([status, body?.toString()], [200, "abc"]);
    assert.deepEqual(headers, {
      "Stream-Next-Offset": "@4",
      "Stream-Up-To-Date": "true",
      ETag: '"id:@1:@4"',
      "Cache-Control": "public, max-age=60, stale-while-revalidate=300",
      "Content-Type": "text/plain",
    });
  });

  test("as an array when it is JSON", () => {
    assert.equal(answerTo({}, streamOf("application/json"), chunkOf("1,\n2,\n")).body?.toString(), "[1,\n2]");
  });

  test("with the end of a closed stream", () => {
    const { headers } = answerTo({}, streamOf("text/plain"), chunkOf("", { closed: true }));
    assert.deepEqual([headers["Stream-Closed"], headers["ETag"]], ["true", '"id:@1:@1:closed"']);
  });

  test("with a tag of its own where more follows: a cache would go on to say that nothing does", () => {
    const answer = answerTo({ "If-None-Match": '"id:@1:@2"' }, streamOf("text/plain"), chunkOf("a", { upToDate: false }));
    assert.deepEqual([answer.status, answer.headers["ETag"], answer.headers["Stream-Up-To-Date"]], [200, '"id:@1:@2:more"', undefined]);
    const again = answerTo({ "If-None-Match": '"id:@1:@2:more"' }, streamOf("text/plain"), chunkOf("a", { upToDate: false }));
    assert.equal(again.status, 304);
  });

  test("with a cursor to live readers", () =>
    assert.equal(answerTo({}, streamOf("text/plain"), chunkOf("a"), "place", "7").headers["Stream-Cursor"], "7"));

  test("never from now out of a cache", () => {
    const { status, headers } = answerTo({ "If-None-Match": "*" }, streamOf("text/plain"), chunkOf("a"), "moving");
    assert.deepEqual([status, headers["Cache-Control"], headers["ETag"]], [200, "no-store", undefined]);
  });

  test("to be asked for each time where its URL is HEAD's, too", () => {
    for (const ifNoneMatch of ["", '"id:@1:@2"']) {
      const { headers } = answerTo({ "If-None-Match": ifNoneMatch }, streamOf("text/plain"), chunkOf("a"), "stream");
      assert.equal(headers["Vary"], "*");
    }
    assert.equal(answerTo({}, streamOf("text/plain"), chunkOf("a")).headers["Vary"], undefined);
  });

  test("not beyond the life of its stream", () => {
    assert.equal(answerTo({}, streamOf("text/plain", 5000), chunkOf("a")).headers["Cache-Control"], "public, max-age=5");
    assert.equal(answerTo({}, streamOf("text/plain", 5000, {}), chunkOf("a")).headers["Cache-Control"], "public, max-age=1");
    assert.equal(answerTo({}, streamOf("text/plain", 3999, {}), chunkOf("a")).headers["Cache-Control"], "no-store");
  });

  test("not again to who has it", () => {
    const { status, headers, body } = answerTo({ "If-None-Match": '"id:@1:@2"' }, streamOf("text/plain"), chunkOf("a"), "place", "7");
    assert.deepEqual(
      [status, body, headers["ETag"], headers["Stream-Cursor"], headers["Content-Type"]],
      [304, null, '"id:@1:@2"', "7", undefined],
    );
  });
});
