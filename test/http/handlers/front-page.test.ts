import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { packageVersion } from "../../../src/ops/version.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const VERSION = packageVersion();

async function factsOf(server: TestServer, target = "/"): Promise<Record<string, string>> {
  const host = `127.0.0.1:${server.port}`;
  return JSON.parse((await server.send("GET", target, { headers: { Host: host, Accept: "application/json" } })).text);
}

describe("the front page", () => {
  for (const target of ["/", "/v1/stream/"]) {
    for (const [title, accept, type] of [
      ["text to curl", "*/*", "text/plain; charset=utf-8"],
      ["HTML to a browser", BROWSER, "text/html; charset=utf-8"],
      ["JSON to those who ask for it", "application/json", "application/json"],
    ] as const) {
      test(`of ${target} is ${title}, and names server, version, documentation and a first request`, async (context) => {
        const server = await startServer(context);
        const { status, headers, text } = await server.send("GET", target, { headers: { Accept: accept } });
        assert.deepEqual([status, headers["content-type"], headers["vary"], headers["cache-control"]], [200, type, "Accept", "no-store"]);
        assert.deepEqual(
          [headers["x-content-type-options"], headers["content-security-policy"]],
          ["nosniff", "sandbox; default-src 'none'"],
        );
        assert.equal(headers["access-control-allow-origin"], "*");
        for (const part of [
          "streamdir",
          VERSION,
          "https://www.npmjs.com/package/streamdir",
          "http://streams.test/v1/stream/",
          "curl -i -X PUT",
        ]) {
          assert.ok(text.includes(part), part);
        }
      });
    }

    test(`of ${target} has a head of its own`, async (context) => {
      const server = await startServer(context);
      const { text, headers } = await server.send("GET", target);
      const connection = await server.begin("HEAD", target, { headers: { Connection: "close" } });
      const head = await connection.answer({ toHead: true });
      assert.deepEqual(
        [head.status, head.headers["content-length"], head.headers["content-type"]],
        [200, String(text.length), headers["content-type"]],
      );
      assert.equal(await connection.rest(), "");
    });
  }

  test("gives those of one origin what every answer gives them", async (context) => {
    const server = await startServer(context, { corsOrigin: "https://a.test" });
    const { headers } = await server.send("GET", "/", { headers: { Origin: "https://a.test" } });
    assert.deepEqual([headers["access-control-allow-origin"], headers["vary"]], ["https://a.test", "Origin, Accept"]);
  });

  test("gives each form the same facts, whatever the host and the prefix hold", async (context) => {
    const server = await startServer(context, { prefix: "/it's&a/" });
    const facts = await factsOf(server, "/it's&a/");
    assert.deepEqual(Object.keys(facts), ["server", "version", "streams", "documentation", "protocol", "health", "page", "try"]);
    const headers = { Host: `127.0.0.1:${server.port}`, Accept: BROWSER };
    const { text } = await server.send("GET", "/", { headers });
    for (const fact of Object.values(facts)) {
      assert.ok(text.includes(fact.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)), fact);
    }
  });

  for (const prefix of ["/v1/stream/", "/it's/", "/"]) {
    test(`prints a request that works, and works again: ${prefix}`, async (context) => {
      const server = await startServer(context, { prefix });
      const { try: attempt = "", streams = "" } = await factsOf(server);
      for (const line of [/^HTTP\/1\.1 201 /, /^HTTP\/1\.1 200 /])
        assert.match((await promisify(execFile)("sh", ["-c", attempt])).stdout, line);
      assert.equal(await (await fetch(`${streams}hello`)).text(), "hello");
    });
  }

  test("prints a read where nothing can be written", async (context) => {
    const server = await startServer(context, { readOnly: true });
    const { try: attempt = "" } = await factsOf(server);
    assert.match((await promisify(execFile)("sh", ["-c", attempt])).stdout, /^streamdir /);
  });

  test("takes no stream's place", async (context) => {
    const server = await startServer(context, { prefix: "/" });
    assert.match((await server.send("GET", "/")).text, /^streamdir /);
    assert.equal((await server.send("PUT", "/", { body: "x" })).status, 400);
    assert.equal((await server.send("PUT", "/a", { body: "x" })).status, 201);
    assert.equal((await server.send("GET", "/a")).text, "x");
  });

  test("leaves the unknown unknown, and says where streams are", async (context) => {
    const server = await startServer(context);
    const { status, text } = await server.send("GET", "/v1/stream");
    assert.deepEqual([status, JSON.parse(text).detail], [404, "Streams are below /v1/stream/."]);
  });
});
