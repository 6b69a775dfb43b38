import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer } from "../../helpers/test-server.js";
import { placeOf } from "../../helpers/tokens.js";

describe("HEAD", () => {
  test("says what a stream is, and has no body", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" }, body: "hello" });
    const { status, headers } = await server.send("HEAD", "a");
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/plain");
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
    assert.equal(headers["cache-control"], "no-store");
    for (const absent of ["stream-closed", "stream-ttl", "stream-expires-at", "etag"]) assert.equal(headers[absent], undefined, absent);
  });

  test("says that a stream is closed", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Stream-Closed": "true" } });
    assert.equal((await server.send("HEAD", "a")).headers["stream-closed"], "true");
  });

  test("tells the seconds that are left, rounded up, and restarts nothing", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Stream-TTL": "10" } });
    const left = async (): Promise<string | undefined> => (await server.send("HEAD", "a")).headers["stream-ttl"];
    assert.equal(await left(), "10");
    server.clock.advance(1);
    assert.equal(await left(), "10");
    server.clock.advance(3000);
    assert.equal(await left(), "7");
    await server.send("GET", "a");
    assert.equal(await left(), "10");
    server.clock.advance(9999);
    assert.equal(await left(), "1");
    server.clock.advance(1);
    assert.equal((await server.send("HEAD", "a")).status, 404);
  });

  test("tells when a stream expires, in UTC", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Stream-Expires-At": "2026-06-01T02:00:00+02:00" } });
    assert.equal((await server.send("HEAD", "a")).headers["stream-expires-at"], "2026-06-01T00:00:00.000Z");
  });

  test("of a stream that is not there is 404 without a body", async (context) => {
    const server = await startServer(context);
    const connection = await server.begin("HEAD", "a", { headers: { Connection: "close" } });
    assert.equal((await connection.answer({ toHead: true })).status, 404);
    assert.equal(await connection.rest(), "");
  });
});
