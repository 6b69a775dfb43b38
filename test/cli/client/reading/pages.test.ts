import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import test from "node:test";
import { runClient } from "../../../helpers/client-verb.js";

test("a server that says no offset is none of streams", async (t) => {
  const server = http.createServer((_, res) => res.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const { status, stdout, stderr } = await runClient(["cat", "a"], { url: `http://127.0.0.1:${address.port}` });
  assert.deepEqual([status, stdout], [74, ""]);
  assert.match(stderr, /is no server of streams: it says no offset\n$/);
});
