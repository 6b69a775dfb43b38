import assert from "node:assert/strict";
import { test } from "node:test";
import { requestBytes, startServer } from "../helpers/test-server.js";

const TIMEOUT_MS = 12_345;
const MAX_READS = 16;

test("one connection can't have more than a few reads waiting", async (context) => {
  const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
  await server.send("PUT", "a");
  const connection = await server.connect();
  const wait = requestBytes("GET", "a?live=long-poll&offset=now");
  connection.write(Buffer.concat(Array.from({ length: MAX_READS + 1 }, () => wait)));
  await server.clock.armed(TIMEOUT_MS, { count: MAX_READS });
  server.clock.advance(TIMEOUT_MS);
  for (let at = 0; at < MAX_READS; at += 1) assert.equal((await connection.answer()).status, 204);
  const refused = await connection.answer();
  assert.equal(refused.status, 503);
  assert.equal(JSON.parse(refused.text).code, "overloaded");
});

test("a connection that was full takes reads again when the others are answered", async (context) => {
  const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
  await server.send("PUT", "a");
  const connection = await server.connect();
  for (let round = 1; round <= MAX_READS + 1; round += 1) {
    connection.write(requestBytes("GET", "a?live=long-poll&offset=now"));
    await server.clock.armed(TIMEOUT_MS, { count: round });
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
  }
});
