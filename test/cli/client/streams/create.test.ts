import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("create makes a stream, and leaves alone one that is made alike", async () => {
  const args = ["create", "a", "--type", "text/plain", "--ttl", "1.5h", "--json"];
  const { nextOffset, ...facts } = JSON.parse(await server.done(args));
  assert.deepEqual(facts, { name: "a", created: true, contentType: "text/plain", closed: false });
  assert.equal(JSON.parse(await server.done(args)).created, false);
  assert.equal(nextOffset, "0000000000000000_0000000000000000");
  assert.match(await server.done(["info", "a"]), /^TTL in seconds {2}5400$/m);
});

test("create takes a moment of expiry, and closure", async () => {
  await server.done(["create", "b", "--expires-at", "2999-01-01T00:00:00Z", "--closed"]);
  const { expiresAt, closed } = JSON.parse(await server.done(["info", "b", "--json"]));
  assert.deepEqual([expiresAt.slice(0, 10), closed], ["2999-01-01", true]);
});

test("create ends with 65 for another stream of the name, and with 64 for a time that is none", async () => {
  await server.done(["create", "c"]);
  const other = await server.run(["create", "c", "--type", "text/plain"]);
  assert.equal(other.status, 65);
  assert.match(other.stderr, /\(config-mismatch\)\n$/);
  assert.equal((await server.run(["create", "d", "--ttl", "long"])).status, 64);
});

test("a terminal is told what was made", async () => {
  const { stdout, stderr } = await server.run(["create", "e"], { isTerminal: true });
  assert.deepEqual([stdout, stderr], ["", 'streamdir: stream "e" is made\n']);
});
