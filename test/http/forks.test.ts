import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { follow, nextPair } from "../helpers/sse-client.js";
import { startServer, type TestServer } from "../helpers/test-server.js";

const JSON_TYPE = { "Content-Type": "application/json" };

function forkOf(source: string, more: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { "Stream-Forked-From": `/v1/stream/${source}`, ...more } };
}

async function read(server: TestServer, target: string): Promise<unknown> {
  const { status, text } = await server.send("GET", target);
  return status === 200 ? JSON.parse(text) : status;
}

async function append(server: TestServer, name: string, message: unknown): Promise<void> {
  const { status } = await server.send("POST", name, { headers: JSON_TYPE, body: JSON.stringify(message) });
  assert.equal(status, 204);
}

describe("a fork", () => {
  test("is read in one answer across its fork point, and source and fork go their own ways", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: JSON_TYPE, body: "[1,2]" });
    const created = await server.send("PUT", "fork", { ...forkOf("source"), body: "[3]" });
    assert.deepEqual([created.status, created.headers["content-type"]], [201, "application/json"]);
    await append(server, "source", "not in the fork");
    await append(server, "fork", 4);
    assert.deepEqual(await read(server, "fork"), [1, 2, 3, 4]);
    assert.deepEqual(await read(server, "source"), [1, 2, "not in the fork"]);
  });

  test("gives its source's tokens for what it shares", async (context) => {
    const server = await startServer(context);
    const { headers } = await server.send("PUT", "source", { headers: JSON_TYPE, body: "[1,2]" });
    await append(server, "source", 3);
    const token = String(headers["stream-next-offset"]);
    const created = await server.send("PUT", "fork", forkOf("source", { "Stream-Fork-Offset": token }));
    assert.equal(created.headers["stream-next-offset"], token);
    await append(server, "fork", "own");
    assert.deepEqual(await read(server, `fork?offset=${token}`), ["own"]);
    const behind = (await server.send("HEAD", "source")).headers["stream-next-offset"];
    const gone = await server.send("GET", `fork?offset=${behind}`);
    const anew = gone.headers["stream-earliest-offset"];
    assert.deepEqual([gone.status, JSON.parse(gone.text).code], [410, "offset-gone"]);
    assert.deepEqual(await read(server, `fork?offset=${anew}`), [1, 2, "own"]);
    // The fork's own tokens mean nothing to its source.
    const own = (await server.send("HEAD", "fork")).headers["stream-next-offset"] ?? "";
    assert.equal((await server.send("GET", `source?offset=${own}`)).status, 410);
    assert.equal((await server.send("PUT", "third", forkOf("source", { "Stream-Fork-Offset": own }))).status, 400);
  });

  test("of a fork, a hundred deep, is one answer", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "f0", { headers: JSON_TYPE, body: "[0]" });
    for (let depth = 1; depth <= 100; depth += 1) {
      await server.send("PUT", `f${depth}`, { ...forkOf(`f${depth - 1}`), body: `[${depth}]` });
    }
    assert.deepEqual(
      await read(server, "f100"),
      Array.from({ length: 101 }, (_, index) => index),
    );
  });

  test("is told of its own appends only, by long-poll and events", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: JSON_TYPE, body: "[1]" });
    await server.send("PUT", "fork", forkOf("source"));
    const tail = String((await server.send("HEAD", "fork")).headers["stream-next-offset"]);
    const poll = await server.begin("GET", `fork?offset=${tail}&live=long-poll`);
    const events = await follow(server, "fork?offset=-1&live=sse");
    const next = async (): Promise<unknown> => JSON.parse((await nextPair(events)).data ?? "null");
    assert.deepEqual(await next(), [1]);
    await append(server, "source", "elsewhere");
    await append(server, "fork", "here");
    assert.equal((await poll.answer()).text, '["here"]');
    assert.deepEqual(await next(), ["here"]);
  });

  test("keeps a deleted source's bytes and name, and frees both with itself", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: JSON_TYPE, body: "[1]" });
    await server.send("PUT", "fork", forkOf("source"));
    assert.equal((await server.send("DELETE", "source")).status, 204);
    const statuses = async (): Promise<number[]> => [
      (await server.send("GET", "source")).status,
      (await server.send("HEAD", "source")).status,
      (await server.send("POST", "source", { headers: JSON_TYPE, body: "1" })).status,
      (await server.send("DELETE", "source")).status,
      (await server.send("PUT", "source", { headers: JSON_TYPE })).status,
      (await server.send("PUT", "another", forkOf("source"))).status,
    ];
    assert.deepEqual(await statuses(), [410, 410, 410, 410, 409, 409]);
    assert.deepEqual(await read(server, "fork"), [1]);
    assert.equal((await server.send("PUT", "fork", forkOf("source"))).status, 200);
    assert.equal((await server.send("DELETE", "fork")).status, 204);
    assert.equal((await server.send("PUT", "source", { headers: JSON_TYPE })).status, 201);
    assert.deepEqual(await read(server, "source"), []);
  });

  test("outlives a source that expires, and does not keep it alive by being read", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: { ...JSON_TYPE, "Stream-TTL": "10" }, body: "[1]" });
    await server.send("PUT", "fork", forkOf("source", { "Stream-TTL": "100" }));
    await server.send("PUT", "heir", forkOf("source"));
    assert.equal((await server.send("HEAD", "heir")).headers["stream-ttl"], "10");
    for (const _ of [1, 2]) {
      server.clock.advance(6000);
      assert.deepEqual(await read(server, "fork"), [1]);
    }
    assert.equal(await read(server, "source"), 410);
    assert.equal(await read(server, "heir"), 404);
    assert.deepEqual(await read(server, "fork"), [1]);
  });

  test("begins open, without its source's producers and sequence", async (context) => {
    const server = await startServer(context);
    const producer = { ...JSON_TYPE, "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0", "Stream-Seq": "9" };
    await server.send("PUT", "source", { headers: JSON_TYPE });
    assert.equal((await server.send("POST", "source", { headers: { ...producer, "Stream-Closed": "true" }, body: "1" })).status, 200);
    assert.equal((await server.send("PUT", "fork", forkOf("source"))).status, 201);
    assert.equal((await server.send("POST", "fork", { headers: { ...producer, "Stream-Seq": "1" }, body: "2" })).status, 200);
    assert.deepEqual(await read(server, "fork"), [1, 2]);
  });

  test("that is refused leaves its source without a reference", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: { "Content-Type": "text/plain" }, body: "a" });
    for (const [headers, status] of [
      [{ "Content-Type": "text/html" }, 409],
      [{ "Stream-Fork-Offset": "now", "Stream-Fork-Sub-Offset": "1" }, 400],
      [{ "Stream-TTL": "x" }, 400],
    ] as const) {
      assert.equal((await server.send("PUT", "fork", forkOf("source", headers))).status, status);
    }
    assert.equal((await server.send("PUT", "fork", forkOf("nobody"))).status, 404);
    await server.send("DELETE", "source");
    assert.equal((await server.send("GET", "source")).status, 404);
  });

  test("made twice at the same time is made once", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "source", { headers: JSON_TYPE, body: "[1,2,3]" });
    const sub = forkOf("source", { "Stream-Fork-Offset": "-1", "Stream-Fork-Sub-Offset": "2" });
    const answers = await Promise.all(Array.from({ length: 8 }, () => server.send("PUT", "fork", sub)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
    assert.deepEqual(await read(server, "fork"), [1, 2]);
  });
});
