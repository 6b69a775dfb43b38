import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer } from "../../helpers/test-server.js";
import { placeOf } from "../../helpers/tokens.js";

const START = "0000000000000000_0000000000000000";
const TEXT = { "Content-Type": "text/plain" };

describe("PUT", () => {
  test("makes a stream and says where it is and what it is", async (context) => {
    const server = await startServer(context);
    const { status, headers, body } = await server.send("PUT", "a", { headers: TEXT });
    assert.equal(status, 201);
    assert.equal(headers["location"], "http://streams.test/v1/stream/a");
    assert.equal(headers["content-type"], "text/plain");
    assert.equal(headers["stream-next-offset"], START);
    assert.equal(headers["stream-closed"], undefined);
    assert.equal(headers["content-length"], "0");
    assert.equal(body.length, 0);
  });

  test("takes initial content, its length told or not", async (context) => {
    const server = await startServer(context);
    const told = await server.send("PUT", "a", { headers: TEXT, body: "hello" });
    const chunked = await server.begin("PUT", "b", { headers: { ...TEXT, "Transfer-Encoding": "chunked" } });
    chunked.write("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
    for (const answer of [told, await chunked.answer()]) {
      assert.equal(answer.status, 201);
      assert.equal(placeOf(answer.headers["stream-next-offset"]), "0_5");
    }
    assert.equal((await server.send("GET", "b")).text, "hello");
  });

  test("without a content type makes a stream of bytes", async (context) => {
    const server = await startServer(context);
    assert.equal((await server.send("PUT", "a")).headers["content-type"], "application/octet-stream");
  });

  test("can make a stream that is closed already", async (context) => {
    const server = await startServer(context);
    const { status, headers } = await server.send("PUT", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "all of it" });
    assert.equal(status, 201);
    assert.equal(headers["stream-closed"], "true");
    assert.equal((await server.send("GET", "a")).headers["stream-closed"], "true");
  });

  test("of a stream that is there as asked for is 200, and appends nothing", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "first" });
    const { status, headers } = await server.send("PUT", "a", { headers: { "Content-Type": "TEXT/plain; charset=utf-8" }, body: "second" });
    assert.equal(status, 200);
    assert.equal(headers["location"], undefined);
    assert.equal(headers["content-type"], "text/plain");
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
    assert.equal((await server.send("GET", "a")).text, "first");
  });

  const others: readonly (readonly [title: string, headers: Record<string, string>])[] = [
    ["another content type", { "Content-Type": "text/html" }],
    ["a TTL", { ...TEXT, "Stream-TTL": "60" }],
    ["an expiry", { ...TEXT, "Stream-Expires-At": "2030-01-01T00:00:00Z" }],
    ["closure", { ...TEXT, "Stream-Closed": "true" }],
  ];
  for (const [title, headers] of others) {
    test(`of a stream that is there without ${title} is 409`, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "a", { headers: TEXT });
      const answer = await server.send("PUT", "a", { headers });
      assert.equal(answer.status, 409);
      assert.equal(JSON.parse(answer.text).code, "config-mismatch");
    });
  }

  test("of JSON checks and flattens the initial content", async (context) => {
    const server = await startServer(context);
    const headers = { "Content-Type": "application/json" };
    assert.equal((await server.send("PUT", "a", { headers, body: "[1, [2]]" })).status, 201);
    assert.equal((await server.send("GET", "a")).text, "[1,\n[2]]");
    assert.equal((await server.send("PUT", "b", { headers, body: "[]" })).status, 201);
    assert.equal((await server.send("GET", "b")).text, "[]");
    assert.equal((await server.send("PUT", "c", { headers, body: "[" })).status, 400);
    assert.equal((await server.send("HEAD", "c")).status, 404);
  });

  test("after a DELETE begins anew", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "old" });
    const before = await server.send("GET", "a");
    await server.send("DELETE", "a");
    assert.equal((await server.send("PUT", "a", { headers: TEXT, body: "new" })).status, 201);
    const after = await server.send("GET", "a");
    assert.equal(after.text, "new");
    assert.notEqual(after.headers["etag"], before.headers["etag"]);
  });
});
