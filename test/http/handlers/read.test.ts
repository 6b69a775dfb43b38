import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { startServer, type TestServer } from "../../helpers/test-server.js";
import { tokensOf } from "../../helpers/tokens.js";

const TEXT = { "Content-Type": "text/plain; charset=utf-8" };
const JSON_TYPE = { "Content-Type": "application/json" };

async function withText(context: TestContext, body: string, options = {}): Promise<TestServer> {
  const server = await startServer(context, options);
  await server.send("PUT", "a", { headers: TEXT, body });
  return server;
}

describe("GET", () => {
  test("reads from the start, and says where the next read begins", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    for (const target of ["a", "a?offset=-1", `a?offset=${token(0)}`, "a?other=1"]) {
      const { status, headers, text } = await server.send("GET", target);
      assert.equal(status, 200);
      assert.equal(text, "hello");
      assert.equal(headers["content-type"], "text/plain; charset=utf-8");
      assert.equal(headers["content-length"], "5");
      assert.equal(headers["stream-next-offset"], token(5));
      assert.equal(headers["stream-up-to-date"], "true");
      assert.equal(headers["stream-closed"], undefined);
      assert.equal(headers["cache-control"], "public, max-age=60, stale-while-revalidate=300");
      assert.match(headers["etag"] ?? "", new RegExp(`^"\\w+:${token(0)}:${token(5)}"$`));
    }
  });

  test("reads from a token on", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    assert.equal((await server.send("GET", `a?offset=${token(3)}`)).text, "lo");
  });

  test("at the tail is empty and up to date", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    const { status, headers, text } = await server.send("GET", `a?offset=${token(5)}`);
    assert.deepEqual([status, text, headers["stream-next-offset"], headers["stream-up-to-date"]], [200, "", token(5), "true"]);
    assert.equal(headers["content-length"], "0");
  });

  test("reads a chunk at a time, and only the last is up to date", async (context) => {
    const server = await withText(context, "he", { chunkBytes: 3 });
    for (const body of ["l", "lo!!", "!"]) await server.send("POST", "a", { headers: TEXT, body });
    const token = await tokensOf(server, "a");
    const first = await server.send("GET", "a");
    assert.deepEqual([first.text, first.headers["stream-next-offset"], first.headers["stream-up-to-date"]], ["hel", token(3), undefined]);
    // Longer than a chunk, and whole; also from its middle on.
    const second = await server.send("GET", `a?offset=${token(3)}`);
    assert.deepEqual(
      [second.text, second.headers["stream-next-offset"], second.headers["stream-up-to-date"]],
      ["lo!!", token(7), undefined],
    );
    assert.equal((await server.send("GET", `a?offset=${token(2)}`)).text, "l");
    assert.equal((await server.send("GET", `a?offset=${token(4)}`)).text, "o!!");
    const last = await server.send("GET", `a?offset=${token(7)}`);
    assert.deepEqual([last.text, last.headers["stream-next-offset"], last.headers["stream-up-to-date"]], ["!", token(8), "true"]);
  });

  test("of JSON reads whole messages as one array", async (context) => {
    const server = await startServer(context, { chunkBytes: 8 });
    await server.send("PUT", "j", { headers: JSON_TYPE, body: '[{"a":1},{"b":2}]' });
    const first = await server.send("GET", "j");
    assert.deepEqual(JSON.parse(first.text), [{ a: 1 }]);
    const second = await server.send("GET", `j?offset=${first.headers["stream-next-offset"]}`);
    assert.deepEqual(JSON.parse(second.text), [{ b: 2 }]);
    assert.equal((await server.send("GET", `j?offset=${second.headers["stream-next-offset"]}`)).text, "[]");
  });

  for (const [title, offset] of [
    ["inside a message", [3, 0]],
    ["beyond the tail", [1000, 0]],
    ["of another segment", [0, 5]],
    ["malformed", "7"],
  ] as const) {
    test(`at an offset ${title} is 400`, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "j", { headers: JSON_TYPE, body: '[{"a":1},{"b":2}]' });
      const token = await tokensOf(server, "j");
      const answer = await server.send("GET", `j?offset=${typeof offset === "string" ? offset : token(offset[0], offset[1])}`);
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [400, "invalid-offset"]);
      assert.equal(answer.headers["cache-control"], "no-store");
    });
  }

  for (const mode of ["", "&live=long-poll", "&live=sse"]) {
    test(`of a name that was deleted and made anew is 410 for an offset of the old stream${mode === "" ? "" : `, also with ${mode.slice(1)}`}`, async (context) => {
      const server = await withText(context, "one;two;");
      const token = (await tokensOf(server, "a"))(4);
      await server.send("DELETE", "a");
      await server.send("PUT", "a", { headers: TEXT, body: "ABCDEFGHIJKLMNOP" });
      const answer = await server.send("GET", `a?offset=${token}${mode}`);
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [410, "offset-gone"]);
      assert.equal(answer.headers["cache-control"], "no-store");
      const anew = answer.headers["stream-earliest-offset"];
      assert.notEqual(anew, "0000000000000000_0000000000000000", "a cache may have what the old stream began with");
      assert.equal((await server.send("GET", `a?offset=${anew}`)).text, "ABCDEFGHIJKLMNOP");
    });
  }

  test("at the end of a closed stream says so, and its ETag too", async (context) => {
    const server = await withText(context, "hello");
    const token = await tokensOf(server, "a");
    const open = await server.send("GET", `a?offset=${token(5)}`);
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    for (const [target, text] of [
      ["a", "hello"],
      [`a?offset=${token(5)}`, ""],
    ] as const) {
      const answer = await server.send("GET", target);
      assert.deepEqual(
        [answer.status, answer.text, answer.headers["stream-closed"], answer.headers["stream-up-to-date"]],
        [200, text, "true", "true"],
      );
      assert.match(answer.headers["etag"] ?? "", /:closed"$/);
      assert.notEqual(answer.headers["etag"], open.headers["etag"]);
    }
  });

  test("before the end of a closed stream does not say that it is closed", async (context) => {
    const server = await withText(context, "he", { chunkBytes: 2 });
    await server.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "llo" });
    const { headers } = await server.send("GET", "a");
    assert.equal(headers["stream-closed"], undefined);
    assert.doesNotMatch(headers["etag"] ?? "", /closed/);
  });

  test("with credentials is private", async (context) => {
    const server = await withText(context, "hello");
    const { headers } = await server.send("GET", "a", { headers: { Authorization: "Bearer t" } });
    assert.equal(headers["cache-control"], "private, max-age=60, stale-while-revalidate=300");
  });

  for (const [readMaxAgeMs, said] of [
    [5_000, "max-age=5, stale-while-revalidate=25"],
    [0, "max-age=0, must-revalidate"],
  ] as const) {
    test(`says how long a cache may show it: ${readMaxAgeMs} ms`, async (context) => {
      const server = await withText(context, "hello", { readMaxAgeMs });
      for (const target of ["a?offset=-1", "a?live=long-poll&offset=-1"]) {
        const { headers } = await server.send("GET", target);
        assert.equal(headers["cache-control"], `public, ${said}`);
        const again = await server.send("GET", target, { headers: { "If-None-Match": headers["etag"] ?? "" } });
        assert.deepEqual([again.status, again.headers["cache-control"]], [304, `public, ${said}`]);
      }
    });
  }

  test("of the stream alone, as HEAD asks, is kept by no cache without asking", async (context) => {
    const server = await withText(context, "hello");
    const { headers } = await server.send("GET", "a");
    assert.equal(headers["vary"], "*");
    assert.equal((await server.send("GET", "a", { headers: { "If-None-Match": headers["etag"] ?? "" } })).status, 304);
    assert.equal((await server.send("GET", "a?offset=-1")).headers["vary"], undefined);
  });

  test("of a stream that expires soon is not kept beyond its end", async (context) => {
    const server = await startServer(context);
    const expiresAt = new Date(server.clock.nowMs() + 30_000).toISOString();
    await server.send("PUT", "a", { headers: { "Stream-Expires-At": expiresAt } });
    assert.equal((await server.send("GET", "a")).headers["cache-control"], "public, max-age=30");
  });

  test("of a stream whose TTL it restarts is kept for a quarter of that, so that the next one comes through in time", async (context) => {
    for (const [ttl, kept] of [
      ["sliding", "public, max-age=7"],
      ["fixed", "public, max-age=30"],
    ] as const) {
      const server = await startServer(context, { ttl });
      await server.send("PUT", "a", { headers: { "Stream-TTL": "30" } });
      assert.equal((await server.send("GET", "a")).headers["cache-control"], kept);
    }
  });

  test("restarts a sliding TTL, and not a fixed one", async (context) => {
    for (const [ttl, status] of [
      ["sliding", 200],
      ["fixed", 404],
    ] as const) {
      const server = await startServer(context, { ttl });
      await server.send("PUT", "a", { headers: { "Stream-TTL": "10" } });
      server.clock.advance(6000);
      await server.send("GET", "a?offset=now");
      server.clock.advance(6000);
      assert.equal((await server.send("HEAD", "a")).status, status, ttl);
    }
  });

  test("of a stream that is not there is 404, and is not cached", async (context) => {
    const server = await startServer(context);
    const answer = await server.send("GET", "a?offset=now");
    assert.deepEqual([answer.status, answer.headers["cache-control"]], [404, "no-store"]);
  });

  test("of a stream that was written by another process is read from its files", async (context) => {
    const before = await startServer(context);
    await before.send("PUT", "a", { headers: JSON_TYPE, body: "[1,22,333]" });
    await before.stop();
    const after = await startServer(context, { dir: before.dir });
    const token = await tokensOf(after, "a");
    assert.deepEqual(JSON.parse((await after.send("GET", "a")).text), [1, 22, 333]);
    assert.deepEqual(JSON.parse((await after.send("GET", `a?offset=${token(3)}`)).text), [22, 333]);
    assert.equal((await after.send("GET", `a?offset=${token(4)}`)).status, 400);
  });
});

describe("GET from now", () => {
  test("is empty, at the tail, and never cached", async (context) => {
    const server = await withText(context, "hello");
    const { status, headers, text } = await server.send("GET", "a?offset=now");
    assert.deepEqual([status, text], [200, ""]);
    const token = await tokensOf(server, "a");
    assert.equal(headers["stream-next-offset"], token(5));
    assert.equal(headers["stream-up-to-date"], "true");
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["etag"], undefined);
    assert.equal(headers["content-length"], "0");
  });

  test("of JSON is an empty array", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "j", { headers: JSON_TYPE, body: "[1]" });
    assert.equal((await server.send("GET", "j?offset=now")).text, "[]");
  });

  test("of a closed stream says that it is closed", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Stream-Closed": "true" }, body: "x" });
    assert.equal((await server.send("GET", "a?offset=now")).headers["stream-closed"], "true");
  });
});

describe("GET with If-None-Match", () => {
  test("of what the client has is 304 with the headers that matter, and nothing else", async (context) => {
    const server = await withText(context, "hello");
    const { headers: had } = await server.send("GET", "a");
    for (const tags of [had["etag"] ?? "", `"x", W/${had["etag"]}`, "*"]) {
      const { status, headers, body } = await server.send("GET", "a", { headers: { "If-None-Match": tags } });
      assert.equal(status, 304);
      assert.equal(body.length, 0);
      for (const name of ["etag", "cache-control", "stream-next-offset", "stream-up-to-date"]) assert.equal(headers[name], had[name], name);
      assert.equal(headers["content-type"], undefined);
    }
  });

  test("of something older is 200", async (context) => {
    const server = await withText(context, "hello");
    const { headers } = await server.send("GET", "a");
    await server.send("POST", "a", { headers: TEXT, body: "!" });
    const answer = await server.send("GET", "a", { headers: { "If-None-Match": headers["etag"] ?? "" } });
    assert.deepEqual([answer.status, answer.text], [200, "hello!"]);
  });

  test("of an open stream that was closed since is 200", async (context) => {
    const server = await withText(context, "hello");
    const { headers } = await server.send("GET", "a");
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const answer = await server.send("GET", "a", { headers: { "If-None-Match": headers["etag"] ?? "" } });
    assert.deepEqual([answer.status, answer.headers["stream-closed"]], [200, "true"]);
    const again = await server.send("GET", "a", { headers: { "If-None-Match": answer.headers["etag"] ?? "" } });
    assert.deepEqual([again.status, again.headers["stream-closed"]], [304, "true"]);
  });
});
