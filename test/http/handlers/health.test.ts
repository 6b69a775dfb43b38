import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { health } from "../../../src/http/handlers/health.js";
import { Layout, segmentPath } from "../../../src/storage/file/format/layout.js";
import { startServer } from "../../helpers/test-server.js";

test("a server that takes writes is healthy", async (context) => {
  const server = await startServer(context);
  const { status, headers, text } = await server.send("GET", "/health");
  assert.equal(status, 200);
  assert.equal(text, '{"status":"ok"}');
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["cache-control"], "no-store");
});

test("HEAD of the health has its status and no body", async (context) => {
  const server = await startServer(context);
  const connection = await server.begin("HEAD", "/health", { headers: { Connection: "close" } });
  assert.equal((await connection.answer({ toHead: true })).status, 200);
  assert.equal(await connection.rest(), "");
});

test("the health has no other method", async (context) => {
  const server = await startServer(context);
  const answer = await server.send("POST", "/health");
  assert.equal(answer.status, 405);
  assert.equal(answer.headers["allow"], "GET, HEAD, OPTIONS");
});

test("a prefix of another name leaves the health where it is", async (context) => {
  const server = await startServer(context, { prefix: "/" });
  assert.equal((await server.send("GET", "/health")).status, 200);
  assert.equal((await server.send("PUT", "/a")).status, 201);
});

test("the health counts damaged streams, and a server that has some is healthy", async (context) => {
  const before = await startServer(context);
  for (const name of ["broken", "sound"]) await before.send("PUT", name, { headers: { "Content-Type": "text/plain" }, body: "hello" });
  await before.stop();
  const { dir } = before;
  writeFileSync(segmentPath(new Layout(dir).streamDirectory("broken"), 0), "hullo");
  const server = await startServer(context, { dir });
  assert.equal((await server.send("GET", "/health")).text, '{"status":"ok"}', "nobody has read it");
  for (let time = 0; time < 2; time += 1) {
    const answer = await server.send("GET", "broken");
    assert.deepEqual(
      [answer.status, answer.headers["stream-next-offset"]],
      [500, (await server.send("HEAD", "broken")).headers["stream-next-offset"]],
    );
  }
  const { status, text } = await server.send("GET", "/health");
  assert.deepEqual([status, text], [200, '{"status":"ok","damagedStreams":1}']);
  assert.equal((await server.send("DELETE", "broken")).status, 204);
  assert.equal((await server.send("GET", "/health")).text, '{"status":"ok"}');
});

test("a server whose storage takes no writes says why, and one that takes them what else is wrong", () => {
  const answers: string[] = [];
  for (const [writable, reason] of [
    [false, "The disk is gone."],
    [false, null],
    [true, "Reads are not noted."],
  ] as const) {
    // All that is asked of a context here.
    const context = {
      registry: { health: () => ({ writable, reason, damagedStreams: 0 }) },
      inFlight: { closing: false },
      responder: { send: (_exchange: Exchange, status: number, _headers: string[], body: Buffer) => answers.push(`${status} ${body}`) },
    } as unknown as Context;
    health(context, {} as Exchange); // only passed on
  }
  assert.deepEqual(answers, [
    '503 {"status":"unavailable","reason":"The disk is gone."}',
    '503 {"status":"unavailable","reason":"The storage accepts no writes."}',
    '200 {"status":"ok","reason":"Reads are not noted."}',
  ]);
});

test("a server is alive and ready beside its streams, and where these are below / the names are theirs", async (context) => {
  const server = await startServer(context);
  for (const path of ["/livez", "/readyz"]) assert.equal((await server.send("GET", path)).text, '{"status":"ok"}');
  const rooted = await startServer(context, { prefix: "/" });
  for (const path of ["/livez", "/readyz"]) assert.equal((await rooted.send("GET", path)).status, 404);
});
