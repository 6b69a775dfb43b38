import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const JSON_TYPE = { "Content-Type": "application/json" };

function timeOf(server: TestServer): string {
  return new Date(server.clock.nowMs()).toISOString();
}

async function texts(server: TestServer, targets: readonly string[]): Promise<string[]> {
  const read: string[] = [];
  for (const target of targets) read.push((await server.send("GET", target)).text);
  return read;
}

describe("GET with last", () => {
  test("of bytes begins so many appends before the tail, or at the start", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    assert.deepEqual(await texts(server, ["a?last=1"]), [""]);
    for (const body of ["one;", "two;", "three;"]) await server.send("POST", "a", { headers: TEXT, body });
    assert.deepEqual(await texts(server, ["a?last=1", "a?last=2", "a?last=3", "a?last=4"]), [
      "three;",
      "two;three;",
      "one;two;three;",
      "one;two;three;",
    ]);
    const { status, headers } = await server.send("GET", "a?last=2");
    assert.deepEqual(
      [status, headers["cache-control"], headers["etag"], headers["stream-up-to-date"]],
      [200, "no-store", undefined, "true"],
    );
    assert.equal(headers["stream-next-offset"], (await server.send("HEAD", "a")).headers["stream-next-offset"]);
  });

  test("of JSON counts messages, also within an append, a fork that begins in one, and a producer's duplicates", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "j", { headers: JSON_TYPE, body: "[0,1,2]" });
    assert.deepEqual(await texts(server, ["j?last=1", "j?last=2"]), ["[2]", "[1,\n2]"]);
    const producer = { ...JSON_TYPE, "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0" };
    for (let times = 0; times < 2; times += 1) await server.send("POST", "j", { headers: producer, body: "[3,4,5]" });
    assert.deepEqual(
      (await texts(server, ["j?last=2", "j?last=4", "j?last=6", "j?last=9"])).map((text) => JSON.parse(text)),
      [
        [4, 5],
        [2, 3, 4, 5],
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 4, 5],
      ],
    );
    const fork = { "Stream-Forked-From": "/v1/stream/j", "Stream-Fork-Offset": "-1", "Stream-Fork-Sub-Offset": "4" };
    await server.send("PUT", "f", { headers: { ...JSON_TYPE, ...fork }, body: '["own"]' });
    assert.deepEqual(
      (await texts(server, ["f?last=1", "f?last=2", "f?last=3", "f?last=5"])).map((text) => JSON.parse(text)),
      [["own"], [3, "own"], [2, 3, "own"], [0, 1, 2, 3, "own"]],
    );
  });

  test("of a stream whose beginning is gone begins at the earliest byte", async (context) => {
    const server = await startServer(context, { retentionBytes: 8192 });
    await server.send("PUT", "a", { headers: TEXT });
    for (let at = 0; at < 10; at += 1) await server.send("POST", "a", { headers: TEXT, body: String(at).repeat(2048) });
    // More of the beginning may go between two reads.
    const [before = "", asked = "", after = "", last] = await texts(server, ["a", "a?last=100", "a", "a?last=1"]);
    assert.ok(before.length < 10 * 2048);
    assert.ok(before.endsWith(asked) && asked.endsWith(after), `${before.length} ${asked.length} ${after.length}`);
    assert.equal(last, "9".repeat(2048));
  });

  test("can be followed, and waited from", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "one;" });
    await server.send("POST", "a", { headers: TEXT, body: "two;" });
    const poll = await server.send("GET", "a?last=1&live=long-poll");
    assert.deepEqual([poll.text, poll.headers["cache-control"]], ["two;", "no-store"]);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const follow = await server.send("GET", "a?last=1&live=sse");
    assert.match(follow.text, /^event: data\ndata:two;\n\n/m);
    assert.doesNotMatch(follow.text, /one;/);
    assert.equal((await server.send("GET", "a?last=1&live=sse&offset=-1")).status, 400);
    assert.equal((await server.send("GET", "nothing?last=1")).status, 404);
  });
});

describe("GET with since", () => {
  test("begins at the first append of that time or later, and at the tail where there is none", async (context) => {
    const server = await startServer(context);
    const times = [timeOf(server)];
    await server.send("PUT", "a", { headers: TEXT, body: "one;" });
    for (const body of ["two;", "three;"]) {
      await server.clock.advance(5000);
      times.push(timeOf(server));
      await server.send("POST", "a", { headers: TEXT, body });
    }
    await server.clock.advance(1);
    times.push(timeOf(server));
    await server.send("PUT", "f", { headers: { "Stream-Forked-From": "/v1/stream/a" } });
    for (const name of ["a", "f"])
      assert.deepEqual(
        await texts(
          server,
          ["1970-01-01T00:00:00Z", ...times].map((time) => `${name}?since=${time}`),
        ),
        ["one;two;three;", "one;two;three;", "two;three;", "three;", ""],
      );
    const answer = await server.send("GET", `a?since=${times[3]}`);
    assert.deepEqual([answer.headers["stream-up-to-date"], answer.headers["cache-control"]], ["true", "no-store"]);
    const later = await server.send("GET", `a?since=${new Date(server.clock.nowMs() + 1).toISOString()}`);
    assert.deepEqual([later.status, JSON.parse(later.text).code], [400, "invalid-query"]);
  });
});
