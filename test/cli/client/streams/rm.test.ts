import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("rm deletes a stream, and only with --yes", async () => {
  await server.done(["create", "a"]);
  const { status, stderr } = await server.run(["rm", "a"]);
  assert.deepEqual([status, stderr], [64, 'streamdir: stream "a" is deleted for good with --yes; nothing was done\n']);
  assert.match(await server.done(["info", "a"]), /^name/);
  assert.equal(await server.done(["rm", "a", "--yes", "--json"]), '{"name":"a","deleted":true}\n');
  assert.equal((await server.run(["rm", "a", "--yes"])).status, 66);
});

test("rm says that it takes no pattern where a name that looks like one is no stream's", async () => {
  await server.done(["create", "chat/*"]);
  await server.done(["rm", "chat/*", "--yes"]);
  const { status, stderr } = await server.run(["rm", "chat/*", "--yes"]);
  assert.equal(status, 66);
  assert.match(stderr, /does not exist.* \(stream-not-found\); rm takes one name, and no pattern\n$/);
});
