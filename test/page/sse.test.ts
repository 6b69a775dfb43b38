import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "../../src/page/sse.js";

const STREAM = 'retry: 100\nevent: data\ndata:a\ndata: b\n\n: comment\n\nevent: control\ndata:{"x":":"}\nid: 0_1\n\nevent: cut';

test("an event stream is cut into events, wherever its pieces end", () => {
  for (let size = 1; size < STREAM.length; size += 1) {
    const parser = new SseParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
    assert.deepEqual(events, [
      { event: "data", data: "a\nb", id: "" },
      { event: "control", data: '{"x":":"}', id: "0_1" },
    ]);
  }
});
