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

for (const ttl of ["0", "0s", "1ms", "1.5s", "1500ms", "-1", "long"])
  test(`create refuses --ttl ${ttl} with 64, and makes nothing`, async () => {
    const { status, stderr } = await server.run(["create", "ttl", `--ttl=${ttl}`]);
    const line = `--ttl must be 1s or more in whole seconds, like 30d or 90s, not "${ttl}"; leave it out for a stream that does not expire`;
    assert.deepEqual([status, stderr], [64, `streamdir: ${line}\n`]);
    assert.equal((await server.run(["info", "ttl"])).status, 66);
  });

for (const [ttl, seconds] of [
  ["1", 1],
  ["1000ms", 1],
  ["2m", 120],
] as const)
  test(`create takes --ttl ${ttl} for ${seconds} s`, async () => {
    await server.done(["create", `ttl/${ttl}`, "--ttl", ttl]);
    assert.equal(JSON.parse(await server.done(["info", `ttl/${ttl}`, "--json"])).ttlSeconds, seconds);
  });

test("create and fork refuse two lifetimes with 64, without asking the server", async () => {
  for (const args of [
    ["create", "both"],
    ["fork", "absent", "both"],
  ]) {
    const { status, stderr } = await server.run([...args, "--ttl", "1h", "--expires-at", "2999-01-01T00:00:00Z"]);
    assert.deepEqual([status, stderr], [64, "streamdir: --ttl and --expires-at exclude each other: give one of them\n"]);
  }
});

test("create and fork refuse an expiry that has passed with 64, and make nothing", async () => {
  await server.done(["create", "source"]);
  for (const args of [
    ["create", "past"],
    ["fork", "source", "past"],
  ]) {
    const { status, stderr } = await server.run([...args, "--expires-at", "2020-01-01T00:00:00Z"]);
    assert.deepEqual([status, stderr], [64, 'streamdir: --expires-at must be in the future, not "2020-01-01T00:00:00Z"\n']);
    assert.equal((await server.run(["info", "past"])).status, 66);
  }
});

test("a terminal is told what was made", async () => {
  const { stdout, stderr } = await server.run(["create", "e"], { isTerminal: true });
  assert.deepEqual([stdout, stderr], ["", 'streamdir: stream "e" is made\n']);
});
