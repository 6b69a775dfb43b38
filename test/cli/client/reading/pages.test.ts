import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { runClient } from "../../../helpers/client-verb.js";

/** The address of a server that answers every request so. */
async function answering(t: TestContext, headers: http.OutgoingHttpHeaders): Promise<string> {
  const server = http.createServer((_, res) => res.writeHead(200, headers).end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

test("a server that says no offset is none of streams", async (t) => {
  const { status, stdout, stderr } = await runClient(["cat", "a"], { url: await answering(t, {}) });
  assert.deepEqual([status, stdout], [69, ""]);
  assert.match(stderr, /is no server of streams: it says no offset; see --server\n$/);
});

test("a server that says that there is more, and gives the same offset again, is not asked for ever", async (t) => {
  const url = await answering(t, { "Stream-Next-Offset": "1_5" });
  for (const verb of [["cat"], ["tail", "-f"]]) {
    const { status, stdout, stderr } = await runClient([...verb, "a", "--from", "0_0"], { url });
    assert.deepEqual([status, stdout], [74, "hello"]);
    assert.match(stderr, /stream "a": the server says that there is more, and has none at 1_5\n$/);
  }
});
