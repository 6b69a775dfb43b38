import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { appendTo } from "../../helpers/append.js";
import { JSON_CONFIG, jsonOf, streamOf } from "../../helpers/streams.js";

describe("a sought place", () => {
  test("in a large append of JSON is the beginning of a message", async (t) => {
    const { stream } = await streamOf(t, JSON_CONFIG);
    const messages = Array.from({ length: 3000 }, (_, at) => JSON.stringify("x".repeat(at % 400)));
    assert.equal((await appendTo(stream, jsonOf(`[${messages.join(",")}]`))).kind, "appended");
    for (const count of [1, 2, 1500, 2999, 3000, 3001]) {
      const from = await stream.locate({ kind: "last", count });
      assert.ok(typeof from !== "object");
      const { bytes } = await stream.read(from, 64 * 1024 * 1024);
      assert.deepEqual(
        bytes.toString().trimEnd().split("\n"),
        messages.slice(-count).map((message) => `${message},`),
      );
    }
    assert.equal(await stream.locate({ kind: "last", count: 3001 }), "start");
    assert.equal(await stream.locate({ kind: "since", atMs: 0 }), "start");
    assert.equal(await stream.locate({ kind: "since", atMs: 1e15 }), stream.tail);
  });

  test("in an empty stream is its tail", async (t) => {
    const { stream } = await streamOf(t);
    assert.equal(await stream.locate({ kind: "last", count: 5 }), 0);
    assert.equal(await stream.locate({ kind: "since", atMs: 0 }), 0);
  });
});
