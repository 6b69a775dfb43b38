import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import test, { describe, type TestContext } from "node:test";
import { wantedBy } from "../../../../src/cli/client/streams/listing.js";
import { runClient } from "../../../helpers/client-verb.js";

test("a word is a name or a pattern, or with a slash at its end what all names begin with", () => {
  assert.deepEqual(wantedBy(""), { prefix: "" });
  assert.deepEqual(wantedBy("a/"), { prefix: "a/" });
  assert.deepEqual(wantedBy("a/*"), { match: "a/*" });
});

async function answering(t: TestContext, body: string): Promise<string> {
  const server = http.createServer((_, res) => res.setHeader("Stream-Next-Offset", "1").end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

describe("a list that is none ends with 74:", () => {
  for (const body of ["<html>", "[]", '{"streams":1}', '{"streams":[1]}', '{"streams":[{"name":"a"}]}'])
    test(body, async (t) => {
      const { status, stderr } = await runClient(["ls"], { url: await answering(t, body) });
      assert.deepEqual([status, stderr], [74, "streamdir: the list of streams is not the JSON it should be\n"]);
    });
});

test("what one may do has no characters that change what a terminal shows", async (t) => {
  const may = ["read", "\u001b[2J", "\u009b2J", 1, "close"];
  const url = await answering(t, JSON.stringify({ streams: [{ name: "a", contentType: "a/b", nextOffset: "1", may }], next: null }));
  const { status, stdout } = await runClient(["info", "a"], { url });
  assert.equal(status, 0);
  assert.match(stdout, /^you may {9}read, close$/m);
  assert.doesNotMatch(stdout, /(?!\n)\p{Cc}/u);
});
