import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("fork begins as its source up to the tail, an offset, or so many messages", async () => {
  const { nextOffset } = JSON.parse(await server.done(["append", "chat/1", "--json", "--create"], "1\n2\n"));
  await server.done(["append", "chat/1", "--json"], "3\n");
  await server.done(["fork", "chat/1", "whole"]);
  await server.done(["fork", "chat/1", "at", "--at", nextOffset]);
  await server.done(["fork", "chat/1", "skip", "--skip", "1", "--ttl", "1h"]);
  await server.done(["append", "skip"], "7\n");
  assert.equal(await server.done(["cat", "whole"]), "1\n2\n3\n");
  assert.equal(await server.done(["cat", "at"]), "1\n2\n");
  assert.equal(await server.done(["cat", "skip"]), "1\n7\n");
  assert.match(await server.done(["info", "skip"]), /^TTL in seconds {2}3600$/m);
});

test("fork ends with 66 without a source, and with 65 beyond its tail", async () => {
  assert.equal((await server.run(["fork", "none", "x"])).status, 66);
  await server.done(["append", "short", "--json", "--create"], "1\n");
  assert.equal((await server.run(["fork", "short", "x", "--skip", "2"])).status, 65);
  assert.match((await server.run(["fork", "short"])).stderr, /streamdir fork needs NAME/);
  assert.equal((await server.run(["fork", "short", "x", "--ttl", "long"])).status, 64);
});
