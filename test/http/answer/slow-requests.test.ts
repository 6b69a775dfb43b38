import assert from "node:assert/strict";
import { test } from "node:test";
import { SlowRequests } from "../../../src/http/answer/slow-requests.js";
import { keptLog } from "../../helpers/engine.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";

test("a request of more than a second is a warning, and a live read's wait is none", async (context) => {
  const server = await startServer(context);
  const headers = { "Content-Type": "text/plain" };
  await server.send("PUT", "a", { headers });
  const poll = await server.begin("GET", "a?live=long-poll&offset=now");
  await server.clock.armed(30_000);
  const upload = await server.connect();
  const bytes = requestBytes("POST", "a", { headers, body: "slow" });
  upload.write(bytes.subarray(0, bytes.length - 1));
  // An answer to a later request shows that the first part has arrived.
  await server.send("HEAD", "a");
  server.clock.advance(1001);
  upload.write(bytes.subarray(bytes.length - 1));
  assert.equal((await upload.answer()).status, 204);
  assert.equal((await poll.answer()).status, 200);
  assert.deepEqual(server.faults, ['a request was slow {"op":"append","stream":"a","status":204,"bytesIn":4,"bytesOut":0,"ms":1001}']);
});

test("many slow requests are one warning a second, with their number", () => {
  const { log, lines } = keptLog();
  const slow = new SlowRequests(log);
  const exchange = { requestId: "r", name: null, target: { path: "/" }, kind: 0, status: 200, receivedBytes: 0, sentBytes: 0 };
  type Noted = Parameters<SlowRequests["note"]>[0];
  const note = (tookMs: number, nowMs: number): void => slow.note(exchange as Noted, tookMs, nowMs); // what it reads
  note(1000, 0);
  note(1001, 0);
  note(5000, 500);
  note(5000, 999);
  note(2000, 1000);
  assert.deepEqual(
    lines.map(({ level, fields }) => [level, fields["ms"], fields["others"]]),
    [
      ["warn", 1001, undefined],
      ["warn", 2000, 2],
    ],
  );
});
