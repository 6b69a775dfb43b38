import assert from "node:assert/strict";
import { test } from "node:test";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer } from "../../helpers/test-server.js";

test("a thousand SSE readers over sockets get every event", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" } });
  const readers = await Promise.all(Array.from({ length: 1000 }, () => follow(server, "a?live=sse&offset=-1")));
  await Promise.all(readers.map(nextPair));
  for (const body of ["one", "two"]) await server.send("POST", "a", { headers: { "Content-Type": "text/plain" }, body });
  for (const reader of readers) {
    assert.equal((await nextPair(reader)).data, "one");
    assert.equal((await nextPair(reader)).data, "two");
  }
});
