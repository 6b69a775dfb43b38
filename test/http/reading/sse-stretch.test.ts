import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SseStretch, type Stretch } from "../../../src/http/reading/sse-stretch.js";
import type { Stream } from "../../../src/stream/loaded/stream.js";
import { parseEventStream } from "../../protocol/event-stream-parser.js";

/** A stream whose tokens are its positions. */
function streamOf(contentType: string): Stream {
  return { config: { contentType }, offsetAt: (position: number) => `@${position}` } as Stream; // all that a batch asks for
}

function batchOf(contentType: string, text: string, stretch: Partial<Stretch> = {}): SseStretch {
  const bytes = Buffer.from(text, "latin1");
  const from = stretch.from ?? 0;
  const ends = bytes.length === 0 ? [] : [from + bytes.length];
  return new SseStretch(streamOf(contentType), { from, bytes, ends, upToDate: true, closed: false, ...stretch });
}

/** Events as `type data`; bytes stay bytes. */
function eventsOf(batch: SseStretch, cursor = "7"): string[] {
  return parseEventStream(batch.encoded(cursor).toString("latin1")).map(({ type, data }) => `${type} ${data}`);
}

function control(fields: object): string {
  return `control ${JSON.stringify(fields)}`;
}

describe("a batch of SSE events", () => {
  test("has a control event behind each data event, and only the last is up to date", () => {
    const batch = batchOf("text/plain", "abcdef", { from: 10, ends: [11, 13, 16] });
    assert.deepEqual(eventsOf(batch), [
      "data a",
      control({ streamNextOffset: "@11", streamCursor: "7" }),
      "data bc",
      control({ streamNextOffset: "@13", streamCursor: "7" }),
      "data def",
      control({ streamNextOffset: "@16", streamCursor: "7", upToDate: true }),
    ]);
    assert.equal(batch.to, 16);
  });

  test("that is not the end of the stream is not up to date", () => {
    assert.deepEqual(eventsOf(batchOf("text/plain", "a", { upToDate: false })), [
      "data a",
      control({ streamNextOffset: "@1", streamCursor: "7" }),
    ]);
  });

  test("of a closed stream ends with its closure, without a cursor", () => {
    assert.deepEqual(eventsOf(batchOf("text/plain", "ab", { ends: [1, 2], closed: true })), [
      "data a",
      control({ streamNextOffset: "@1", streamCursor: "7" }),
      "data b",
      control({ streamNextOffset: "@2", upToDate: true, streamClosed: true }),
    ]);
  });

  test("of a closure alone is one control event", () => {
    const batch = batchOf("text/plain", "", { from: 5, closed: true });
    assert.equal(batch.isEmpty, false);
    assert.deepEqual(eventsOf(batch), [control({ streamNextOffset: "@5", upToDate: true, streamClosed: true })]);
  });

  test("without data is empty, but can say where the reader stands", () => {
    const batch = batchOf("text/plain", "", { from: 5 });
    assert.equal(batch.isEmpty, true);
    assert.deepEqual(eventsOf(batch), [control({ streamNextOffset: "@5", streamCursor: "7", upToDate: true })]);
  });

  test("of bytes is base64, one of JSON is an array", () => {
    assert.deepEqual(eventsOf(batchOf("image/png", "\x00\xff"))[0], "data AP8=");
    assert.deepEqual(JSON.parse(eventsOf(batchOf("application/json", "1,\n{},\n"))[0]?.slice("data ".length) ?? ""), [1, {}]);
  });

  test("is encoded once for each cursor", () => {
    const batch = batchOf("text/plain", "a");
    assert.equal(batch.encoded("7"), batch.encoded("7"));
    assert.notEqual(batch.encoded("8"), batch.encoded("7"));
    assert.match(batch.encoded("8").toString(), /"streamCursor":"8"/);
  });

  test("keeps few texts, however many cursors there are", () => {
    const batch = batchOf("text/plain", "a");
    const frames = Array.from({ length: 100 }, (_, cursor) => batch.encoded(String(cursor)));
    const kept = frames.filter((frame, cursor) => frame === batch.encoded(String(cursor)));
    assert.ok(kept.length > 0 && kept.length < 50, String(kept.length));
    assert.match(batch.encoded("99").toString(), /"streamCursor":"99"/);
  });
});

describe("text as SSE events", () => {
  test("that ends inside a character waits for the rest of it", () => {
    const batch = batchOf("text/plain", "a\xe2\x82");
    assert.deepEqual(eventsOf(batch), ["data a", control({ streamNextOffset: "@1", streamCursor: "7", upToDate: true })]);
    assert.equal(batch.to, 1);
  });

  test("that is only part of a character says nothing", () => {
    const batch = batchOf("text/plain", "\xe2\x82", { from: 3 });
    assert.equal(batch.isEmpty, true);
    assert.equal(batch.to, 3);
  });

  test("of a character in two appends comes with the second", () => {
    const batch = batchOf("text/plain", "a\xe2\x82\xac", { ends: [2, 4] });
    assert.deepEqual(eventsOf(batch), [
      "data a",
      control({ streamNextOffset: "@1", streamCursor: "7" }),
      "data \xe2\x82\xac",
      control({ streamNextOffset: "@4", streamCursor: "7", upToDate: true }),
    ]);
  });

  test("of a closed stream is sent to its last byte", () => {
    const batch = batchOf("text/plain", "a\xe2\x82", { ends: [1, 3], closed: true });
    assert.equal(eventsOf(batch).at(-2), "data \xe2\x82");
    assert.equal(batch.to, 3);
  });

  test("is not cut between CR and LF at the end of a chunk", () => {
    assert.equal(batchOf("text/plain", "abc\r", { upToDate: false }).to, 3);
    assert.equal(batchOf("text/plain", "abc\r\n", { upToDate: false }).to, 5);
    assert.equal(batchOf("text/plain", "abc\r").to, 4);
  });

  test("can't forge an event", () => {
    const events = eventsOf(batchOf("text/plain", "a\r\n\r\nevent: control\rdata: {}\n\n"));
    assert.deepEqual(
      events.map((event) => event.split(" ")[0]),
      ["data", "control"],
    );
  });
});
