import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuthFile } from "../../helpers/auth-file.js";
import { Random } from "../../helpers/random.js";
import { startServer, type RequestParts, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const LIST = "__ds/streams";

interface Page {
  readonly streams: readonly Record<string, unknown>[];
  readonly next: string | null;
}

async function page(server: TestServer, query: string, parts: RequestParts = {}): Promise<Page> {
  const answer = await server.send("GET", `${LIST}?${query}`, parts);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
  return JSON.parse(answer.text);
}

function namesOf({ streams }: Page): unknown[] {
  return streams.map(({ name }) => name);
}

/** All names, page by page. */
async function walk(server: TestServer, query: string, parts: RequestParts = {}): Promise<unknown[]> {
  const names: unknown[] = [];
  for (let after = ""; ;) {
    const { next, ...rest } = await page(server, `${query}&after=${encodeURIComponent(after)}`, parts);
    names.push(...namesOf({ next, ...rest }));
    if (next === null) return names;
    after = next;
  }
}

describe("GET of the list", () => {
  test("has each stream with what is known of it", async (context) => {
    const server = await startServer(context);
    assert.deepEqual(await page(server, ""), { streams: [], next: null });
    const createdAt = new Date(server.clock.nowMs()).toISOString();
    await server.send("PUT", "a/1", { headers: { ...TEXT, "Stream-TTL": "5" }, body: "one" });
    const tail = (await server.send("HEAD", "a/1")).headers["stream-next-offset"];
    await server.send("PUT", "b", { headers: { "Stream-Forked-From": "/v1/stream/a/1", "Stream-Closed": "true" } });
    await server.begin("GET", "a/1?live=sse&offset=now").then((connection) => connection.until("upToDate"));
    const { streams, next } = await page(server, "");
    assert.equal(next, null);
    const expiresAt = new Date(server.clock.nowMs() + 5000).toISOString();
    const may = ["read", "append", "close", "delete"];
    const common = {
      producers: 0,
      may,
      contentType: "text/plain",
      nextOffset: tail,
      earliestOffset: "0000000000000000_0000000000000000",
      bytes: 3,
    };
    const times = { createdAt, ttlSeconds: 5, expiresAt };
    assert.deepEqual(streams, [
      { ...common, ...times, name: "a/1", closed: false, lastAppendAt: createdAt, isFork: false, forkedFrom: null, liveReaders: 1 },
      { ...common, ...times, name: "b", closed: true, lastAppendAt: null, isFork: true, forkedFrom: "a/1", liveReaders: 0 },
    ]);
    await server.clock.advance(6000);
    assert.deepEqual(namesOf(await page(server, "")), []);
  });

  test("has a head of its own for who asks how following it begins, and nothing follows", async (context) => {
    const server = await startServer(context);
    const head = await server.send("HEAD", `${LIST}?live=sse`);
    assert.deepEqual([head.status, head.headers["content-type"], head.text], [200, "text/event-stream", ""]);
    assert.equal(head.headers["content-length"], undefined);
    const page = await server.send("HEAD", LIST);
    assert.deepEqual([page.status, page.headers["content-type"], page.text], [200, "application/json", ""]);
  });

  test("goes by prefix and by pattern, in order, page by page", async (context) => {
    const server = await startServer(context);
    const names = ["a", "a/b", "a/b/c", "ab", "b/x", "b/y/z", "Ä/ö"];
    for (const name of names) await server.send("PUT", encodeURIComponent(name));
    for (const [query, expected] of [
      ["", names],
      ["prefix=a", ["a", "a/b", "a/b/c", "ab"]],
      ["prefix=a/", ["a/b", "a/b/c"]],
      ["match=a/**", ["a", "a/b", "a/b/c"]],
      ["match=*/*", ["a/b", "b/x", "Ä/ö"]],
      ["match=**/z", ["b/y/z"]],
      ["prefix=b&match=*/x", ["b/x"]],
      ["prefix=c", []],
      ["prefix=%C3%84", ["Ä/ö"]],
    ] as const) {
      assert.deepEqual(namesOf(await page(server, query)), expected, query);
      assert.deepEqual(await walk(server, `${query}&limit=1`), expected, query);
      assert.deepEqual(await walk(server, `${query}&limit=2`), expected, query);
    }
  });

  test("misses none and repeats none that is there throughout, while others come and go", async (context) => {
    const random = new Random(5);
    const server = await startServer(context);
    const steady = Array.from({ length: 60 }, (_, at) => `s${String(at * 7).padStart(3, "0")}`);
    for (const name of steady) await server.send("PUT", name);
    let isOver = false;
    const churn = (async () => {
      while (!isOver) {
        const name = `s${String(random.integer(0, 420)).padStart(3, "0")}`;
        if (!steady.includes(name)) await server.send(random.chance(0.5) ? "PUT" : "DELETE", name);
      }
    })();
    for (let round = 0; round < 5; round += 1) {
      const found = await walk(server, "limit=7");
      assert.deepEqual([...found].sort(), found);
      assert.equal(new Set(found).size, found.length);
      assert.deepEqual(
        found.filter((name) => steady.includes(String(name))),
        steady,
      );
    }
    isOver = true;
    await churn;
  });

  test("counts producers, and says what may be done with a stream", async (context) => {
    const auth = new AuthFile();
    const token = auth.token("t", [
      { streams: ["**"], allow: ["list", "read", "create", "append"] },
      { streams: ["b"], allow: ["close", "delete"] },
    ]);
    auth.write();
    const server = await startServer(context, { auth: auth.path });
    const headers = { ...TEXT, Authorization: `Bearer ${token}` };
    for (const name of ["a", "b"]) await server.send("PUT", name, { headers });
    for (const id of ["p", "q"]) {
      const producer = { "Producer-Id": id, "Producer-Epoch": "0", "Producer-Seq": "0" };
      await server.send("POST", "a", { headers: { ...headers, ...producer }, body: id });
    }
    const { streams } = await page(server, "", { headers });
    assert.deepEqual(
      streams.map(({ producers, may }) => [producers, may]),
      [
        [2, ["read", "append"]],
        [0, ["read", "append", "close", "delete"]],
      ],
    );
  });

  test("shows whom it may what they may list and read, and no source that they may not read", async (context) => {
    const auth = new AuthFile();
    const all = auth.token("all", [{ streams: ["**"], allow: ["list", "read", "create"] }]);
    const some = auth.token("some", [
      { streams: ["a/**"], allow: ["list", "read"] },
      { streams: ["b/**"], allow: ["list"] },
      { streams: ["c/**"], allow: ["read"] },
    ]);
    const none = auth.token("none", [{ streams: ["**"], allow: ["read"] }]);
    auth.write();
    const server = await startServer(context, { auth: auth.path });
    const as = (token: string): RequestParts => ({ headers: { Authorization: `Bearer ${token}` } });
    for (const name of ["a/1", "b/1", "c/1", "d/1"]) await server.send("PUT", name, as(all));
    const fork = { headers: { ...as(all).headers, "Stream-Forked-From": "/v1/stream/d/1" } };
    assert.equal((await server.send("PUT", "a/fork", fork)).status, 201);
    assert.deepEqual(await walk(server, "limit=1", as(all)), ["a/1", "a/fork", "b/1", "c/1", "d/1"]);
    assert.deepEqual(await walk(server, "limit=1", as(some)), ["a/1", "a/fork"]);
    const [own, forked] = (await page(server, "", as(some))).streams;
    assert.deepEqual(own?.["may"], ["read"]);
    assert.deepEqual([forked?.["isFork"], forked?.["forkedFrom"]], [true, null]);
    assert.doesNotMatch((await server.send("GET", LIST, as(some))).text, /b\/1|c\/1|d\/1/);
    for (const [parts, status, code] of [
      [{}, 401, "credential-missing"],
      [as(none), 403, "not-allowed"],
      [as("sd_nobody_x"), 401, "invalid-token"],
    ] as const) {
      const answer = await server.send("GET", LIST, parts);
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [status, code]);
    }
  });

  for (const [query, code] of [
    ["limit=0", "invalid-query"],
    ["limit=1001", "invalid-query"],
    ["match=a//b", "invalid-query"],
    [`match=${"a*".repeat(17)}`, "invalid-query"],
    ["live=long-poll", "invalid-query"],
    ["prefix=a&prefix=b", "invalid-query"],
    ["prefix=%ff", "invalid-query"],
    [`prefix=${"x".repeat(1025)}`, "invalid-query"],
  ] as const)
    test(`with ${query.slice(0, 20)} is refused`, async (context) => {
      const server = await startServer(context);
      const answer = await server.send("GET", `${LIST}?${query}`);
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [400, code]);
    });

  test("has no other method", async (context) => {
    const server = await startServer(context);
    for (const method of ["POST", "PUT", "DELETE"]) assert.equal((await server.send(method, LIST)).status, 405);
    assert.equal((await server.send("HEAD", LIST)).status, 200);
  });
});

describe("GET of the list with live=sse", () => {
  test("tells what is made, closed and deleted from then on, and goes on where a client comes back", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a/before");
    const connection = await server.begin("GET", `${LIST}?live=sse&prefix=a`);
    const head = await connection.until('data:{"resumed":false}');
    assert.match(head, /text\/event-stream/);
    await server.send("PUT", "a/1", { headers: TEXT });
    await server.send("PUT", "b", { headers: TEXT });
    await server.send("POST", "a/1", { headers: { "Stream-Closed": "true" } });
    const seen = await connection.until("event: closed");
    assert.match(
      seen,
      /event: created\ndata:\{"name":"a\/1","contentType":"text\/plain","closed":false,"nextOffset":"0{16}_0{16}"\}\nid: /,
    );
    assert.doesNotMatch(seen, /"b"/);
    const id = /event: created\n.*\nid: (\S+)/.exec(seen)?.[1] ?? "";
    await connection.close();
    await server.send("DELETE", "a/before");
    const again = await server.begin("GET", `${LIST}?live=sse`, { headers: { "Last-Event-ID": id } });
    const rest = await again.until('event: deleted\ndata:{"name":"a/before"}');
    assert.match(rest, /data:\{"resumed":true\}/);
    assert.match(rest, /"name":"b"/);
    assert.match(rest, /event: closed/);
    assert.doesNotMatch(rest, /event: created\ndata:\{"name":"a\/1"/);
  });

  test("tells nobody of names that they may not read", async (context) => {
    const auth = new AuthFile();
    const all = auth.token("all", [{ streams: ["**"], allow: ["list", "read", "create"] }]);
    const some = auth.token("some", [{ streams: ["a/**"], allow: ["list", "read"] }]);
    auth.write();
    const server = await startServer(context, { auth: auth.path });
    const connection = await server.begin("GET", `${LIST}?live=sse`, { headers: { Authorization: `Bearer ${some}` } });
    await connection.until("event: control");
    for (const name of ["b/secret", "a/open"]) await server.send("PUT", name, { headers: { Authorization: `Bearer ${all}` } });
    assert.doesNotMatch(await connection.until("a/open"), /secret/);
  });
});
