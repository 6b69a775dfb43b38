import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("info says what a stream is", async () => {
  await server.done(["append", "a", "--lines", "--create"], "x\n");
  const text = await server.done(["info", "a"]);
  assert.match(text, /^name {12}a\ncontent type {4}text\/plain\nstate {11}open\ntail {12}\d{16}_\d{16}\n/);
  const facts = JSON.parse(await server.done(["info", "a", "--json"]));
  assert.deepEqual([facts.name, facts.contentType, facts.closed, facts.ttlSeconds], ["a", "text/plain", false, null]);
  assert.equal(text.includes("TTL"), false);
  assert.match(text, /\nlive readers {4}0\nproducers {7}1\nyou may {9}read, append, close, delete\n$/);
});

test("info ends with 66 where there is no stream", async () => {
  const { status, stderr } = await server.run(["info", "none"]);
  assert.deepEqual([status, stderr], [66, 'streamdir: stream "none": The stream does not exist (stream-not-found)\n']);
});
