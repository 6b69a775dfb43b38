import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer, type TestScope, type TestServer } from "../helpers/test-server.js";

const JSON_TYPE = { "Content-Type": "application/json" };

/** A server that keeps little, and a stream with tokens of all its places, most of which are gone. */
async function trimmedStream(scope: TestScope): Promise<{ server: TestServer; tokens: string[] }> {
  const server = await startServer(scope, { retentionBytes: 8192 });
  const created = await server.send("PUT", "s", { headers: JSON_TYPE });
  const tokens = [String(created.headers["stream-next-offset"])];
  for (let number = 0; number < 40; number += 1) {
    // The last is too small to make anything go: when it is answered, what went before it has gone.
    const text = "x".repeat(number === 39 ? 1 : 1000);
    const { headers } = await server.send("POST", "s", { headers: JSON_TYPE, body: JSON.stringify({ number, text }) });
    tokens.push(String(headers["stream-next-offset"]));
  }
  return { server, tokens };
}

/** Where the stream begins, as HEAD tells it. */
async function earliestOf(server: TestServer): Promise<string> {
  return String((await server.send("HEAD", "s")).headers["stream-earliest-offset"]);
}

describe("retention: a stream of which only the end is kept", () => {
  test("answers 410 before its earliest byte, and tells where that is", async (context) => {
    const { server, tokens } = await trimmedStream(context);
    const earliest = await earliestOf(server);
    const gone = tokens.filter((token) => token < earliest);
    assert.ok(gone.length > 20 && gone.length < 40, `${gone.length} tokens are gone`);
    for (const query of ["", "&live=long-poll", "&live=sse"]) {
      for (const token of gone) {
        const { status, headers, body } = await server.send("GET", `s?offset=${token}${query}`);
        assert.deepEqual([status, headers["stream-earliest-offset"], JSON.parse(body.toString()).code], [410, earliest, "offset-gone"]);
      }
    }
  });

  test("is followed from its earliest byte on by who asks for its beginning", async (context) => {
    const { server } = await trimmedStream(context);
    const { headers } = await (await server.begin("GET", "s?live=sse&offset=-1")).head();
    assert.equal(headers["stream-next-offset"], await earliestOf(server));
  });

  test("is read from -1 and from every token that is left, without a gap", async (context) => {
    const { server, tokens } = await trimmedStream(context);
    const earliest = await earliestOf(server);
    assert.ok(tokens.includes(earliest), "the earliest place is one that was given out");
    const all = JSON.parse((await server.send("GET", "s?offset=-1")).body.toString()) as { number: number }[];
    assert.equal(all.at(-1)?.number, 39);
    for (const [index, token] of tokens.entries()) {
      if (token < earliest) continue;
      const { status, body } = await server.send("GET", `s?offset=${token}`);
      assert.deepEqual([status, JSON.parse(body.toString()).length], [200, 40 - index]);
    }
    assert.equal(all.length, 40 - tokens.indexOf(earliest));
  });

  test("takes appends, and its tail's token is the one that was given out", async (context) => {
    const { server, tokens } = await trimmedStream(context);
    assert.equal((await server.send("HEAD", "s")).headers["stream-next-offset"], tokens.at(-1));
    assert.equal((await server.send("POST", "s", { headers: JSON_TYPE, body: "1" })).status, 204);
    const { body } = await server.send("GET", `s?offset=${tokens.at(-1)}`);
    assert.equal(body.toString(), "[1]");
  });

  test("does not tell an earliest place while all of it is kept", async (context) => {
    const server = await startServer(context, { retentionBytes: 8192 });
    await server.send("PUT", "s", { headers: JSON_TYPE, body: "[1,2]" });
    assert.equal((await server.send("HEAD", "s")).headers["stream-earliest-offset"], undefined);
  });
});
