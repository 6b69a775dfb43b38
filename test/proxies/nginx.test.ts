import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeAuthority } from "../helpers/certificates.js";
import { Page } from "../helpers/page-examples.js";
import { ask, RealServer } from "../helpers/real-server.js";
import { EventFollower } from "./follow.js";
import { documentedBlock, lacksNginx, Nginx, type HttpBlock } from "./nginx.js";
import { Origin } from "./origin.js";
import { proxyPromises } from "./promises.js";

const TEXT = { "Content-Type": "text/plain" };
const TIMEOUT_MS = 300_000;

/** What nginx does by default, behind one line of configuration; `more` are lines for the place of that line. */
function plainBlock(...more: string[]): HttpBlock {
  return ({ port, originPort }) =>
    `server {\n  listen 127.0.0.1:${port};\n  location / {\n    proxy_pass http://127.0.0.1:${originPort};\n${more.join("\n")}\n  }\n}\n`;
}

/** A cache as nginx has it by default: it turns HEAD into GET. */
const defaultCache: HttpBlock = (places) =>
  `proxy_cache_path ${places.dir}/cache keys_zone=all:1m;\n${plainBlock("    proxy_cache all;", "    proxy_cache_lock on;", "    proxy_cache_valid any 1h;")(places)}`;

describe("behind nginx as docs/nginx.conf has it", { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
  proxyPromises(async (scope, originPort) => (await Nginx.start(scope, originPort)).url);

  test("history is read once from the origin, and a closed end with it", async (context) => {
    const origin = await Origin.start(context);
    const { url } = await Nginx.start(context, origin.port);
    await ask(`${url}s`, "PUT", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "all of it" });
    for (let reader = 0; reader < 20; reader += 1) {
      const { body, headers } = await ask(`${url}s?offset=-1`, "GET");
      assert.deepEqual([body, headers["stream-closed"]], ["all of it", "true"]);
    }
    assert.equal(origin.reads, 1);
  });

  test("readers that come together for history make one request", async (context) => {
    const origin = await Origin.start(context);
    const { url } = await Nginx.start(context, origin.port);
    const body = "x".repeat(900_000);
    await ask(`${origin.url}s`, "PUT", { headers: TEXT, body });
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(`${url}s?offset=-1`, "GET")));
    assert.ok(replies.every((reply) => reply.body === body));
    assert.equal(origin.reads, 1);
  });

  test("what is to be asked for each time is asked for each time", async (context) => {
    const origin = await Origin.start(context, { readMaxAgeMs: 0 });
    const { url } = await Nginx.start(context, origin.port);
    await ask(`${url}s`, "PUT", { headers: TEXT });
    let written = "";
    for (const text of ["one", "two", "three"]) {
      written += text;
      await ask(`${origin.url}s`, "POST", { headers: TEXT, body: text });
      assert.equal((await ask(`${url}s?offset=-1`, "GET")).body, written);
    }
    assert.equal(origin.reads, 3);
  });

  test("what has once reached the tail is not said to reach it when more has come", async (context) => {
    const origin = await Origin.start(context, { readMaxAgeMs: 1000 });
    const { url } = await Nginx.start(context, origin.port);
    const reachesTail = async (): Promise<boolean> => (await ask(`${url}s?offset=-1`, "GET")).headers["stream-up-to-date"] === "true";
    await ask(`${url}s`, "PUT", { headers: TEXT, body: "x".repeat(1_500_000) });
    assert.ok(await reachesTail());
    await ask(`${origin.url}s`, "POST", { headers: TEXT, body: "more" });
    // nginx shows what it has until it has asked again.
    while (await reachesTail()) assert.ok(!context.signal.aborted);
  });

  test("a client that has it already is told so, by nginx and by the origin", async (context) => {
    const origin = await Origin.start(context);
    const { url } = await Nginx.start(context, origin.port);
    await ask(`${url}s`, "PUT", { headers: TEXT, body: "one" });
    for (const [target, reads] of [
      ["s?offset=-1", 1],
      ["s", 3],
    ] as const) {
      const { headers } = await ask(`${url}${target}`, "GET");
      const again = await ask(`${url}${target}`, "GET", { headers: { "If-None-Match": String(headers["etag"]) } });
      assert.deepEqual([again.status, again.headers["stream-next-offset"], origin.reads], [304, headers["stream-next-offset"], reads]);
    }
  });

  test("what is read with credentials is nobody else's", async (context) => {
    const origin = await Origin.start(context);
    const { url } = await Nginx.start(context, origin.port);
    await ask(`${url}s`, "PUT", { headers: TEXT, body: "one" });
    for (let round = 0; round < 2; round += 1) {
      const { headers } = await ask(`${url}s?offset=-1`, "GET", { headers: { Authorization: "Bearer t" } });
      assert.match(String(headers["cache-control"]), /^private,/);
    }
    assert.equal(origin.reads, 2);
    assert.match(String((await ask(`${url}s?offset=-1`, "GET")).headers["cache-control"]), /^public,/);
  });

  test("a ticket is in no log, and in no cache", async (context) => {
    const origin = await Origin.start(context);
    const nginx = await Nginx.start(context, origin.port);
    await ask(`${origin.url}s`, "PUT", { headers: TEXT, body: "one" });
    const queries = ["offset=-1", "offset=-1&ticket=v1.secret", "ticket=v1.secret&offset=-1"];
    const headers = { Referer: "http://page.example/?ticket=v1.secret" };
    for (const query of [...queries, ...queries]) assert.equal((await ask(`${nginx.url}s?${query}`, "GET", { headers })).body, "one");
    assert.equal(origin.reads, 1 + 2 * 2);
    await origin.stop();
    assert.equal((await ask(`${nginx.url}s?offset=-1&ticket=v1.secret`, "GET", { headers })).status, 502);
    await nginx.logged(/"GET \/v1\/stream\/s HTTP\/1.1" 502 /);
    const files = readdirSync(nginx.dir, { recursive: true, encoding: "utf8" }).map((name) => join(nginx.dir, name));
    const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, "latin1"));
    assert.ok(
      texts.some((text) => text.includes("KEY: /v1/stream/s?offset=-1\n")),
      "what has no ticket is in the cache",
    );
    for (const text of [...texts, nginx.process.stderrText()]) assert.ok(!text.includes("v1.secret"), text);
  });

  for (const compress of [false, true])
    test(`each origin of pages has answers of its own${compress ? ", compressed ones too" : ""}`, async (context) => {
      const origin = await Origin.start(context, { corsOrigin: "https://a.example,https://b.example", compress });
      const { url } = await Nginx.start(context, origin.port);
      await ask(`${url}s`, "PUT", { headers: TEXT, body: "one" });
      for (let round = 0; round < 2; round += 1) {
        for (const page of ["https://a.example", "https://b.example"]) {
          const { headers } = await ask(`${url}s?offset=-1`, "GET", { headers: { Origin: page } });
          assert.equal(headers["access-control-allow-origin"], page);
        }
      }
    });
});

test("behind nginx that authenticates, with the line of docs/proxies.md for it, answers are private", { skip: lacksNginx }, async (t) => {
  const line = /^proxy_set_header Authorization .*$/m.exec(new Page("docs/proxies.md").text)?.[0];
  assert.ok(line !== undefined);
  const origin = await Origin.start(t);
  const { url } = await Nginx.start(t, origin.port, plainBlock(line));
  await ask(`${url}s`, "PUT", { headers: TEXT, body: "one" });
  for (const target of ["s?offset=-1", "s", "s?offset=-1&live=long-poll"])
    assert.match(String((await ask(`${url}${target}`, "GET")).headers["cache-control"]), /^private,/);
});

test(
  "behind nginx with the lines of docs/proxies.md for TLS, streams are served over HTTP/2",
  { skip: lacksNginx, timeout: TIMEOUT_MS },
  async (t) => {
    const authority = makeAuthority();
    const { cert, key } = authority.issue({ names: ["127.0.0.1"] });
    const [lines = ""] = /^```nginx\n(listen 443 [^]*?)^```$/m.exec(new Page("docs/proxies.md").text)?.slice(1) ?? [];
    const origin = await Origin.start(t, { trustProxy: "loopback" });
    const { port } = await Nginx.start(t, origin.port, (places) => {
      const files = { "/etc/ssl/streams.pem": cert, "/etc/ssl/streams.key": key };
      let tls = lines.replace("listen 443 ", `listen 127.0.0.1:${places.port} `);
      for (const [index, [documented, text]] of Object.entries(files).entries()) {
        assert.ok(tls.includes(documented));
        const path = join(places.dir, `${index}.pem`);
        writeFileSync(path, text);
        tls = tls.replace(documented, path);
      }
      return documentedBlock(places).replace(`listen 127.0.0.1:${places.port};`, tls);
    });
    const session = connect(`https://127.0.0.1:${port}`, { ca: authority.ca });
    t.after(() => session.close());
    const statusOf = async (headers: OutgoingHttpHeaders, body = ""): Promise<unknown> => {
      const asked = { ":path": "/v1/stream/s", "content-type": "text/plain", ...headers };
      const stream = session.request(asked, { endStream: body === "" });
      if (body !== "") stream.end(body);
      const [answer] = (await once(stream, "response")) as [Readonly<Record<string, unknown>>]; // as node:http2 has it
      stream.resume();
      return [answer[":status"], answer["location"]];
    };
    assert.deepEqual(await statusOf({ ":method": "PUT" }, "hello"), [201, `https://127.0.0.1:${port}/v1/stream/s`]);
    assert.deepEqual(await statusOf({ ":method": "HEAD" }), [200, undefined]);
  },
);

for (const [what, block] of [
  ["as docs/nginx.conf has it", documentedBlock],
  ["that turns HEAD into GET for its cache", defaultCache],
] as const) {
  describe(`behind nginx ${what}`, { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
    test("HEAD tells the tail, whatever was read or asked before", async (context) => {
      const origin = await Origin.start(context);
      const { url } = await Nginx.start(context, origin.port, block);
      await ask(`${origin.url}s`, "PUT", { headers: TEXT });
      for (const target of ["s", "s?offset=-1", "s?live=long-poll&offset=-1", "s"]) {
        const appended = await ask(`${origin.url}s`, "POST", { headers: TEXT, body: "more" });
        await ask(`${url}${target}`, "GET");
        await ask(`${url}s`, "HEAD");
        const closing = await ask(`${origin.url}s`, "POST", { headers: TEXT, body: "and more" });
        const { status, headers } = await ask(`${url}s`, "HEAD");
        assert.deepEqual([status, headers["stream-next-offset"]], [200, closing.headers["stream-next-offset"]]);
        assert.notEqual(headers["stream-next-offset"], appended.headers["stream-next-offset"]);
      }
      await ask(`${origin.url}s`, "POST", { headers: { "Stream-Closed": "true" } });
      assert.equal((await ask(`${url}s`, "HEAD")).headers["stream-closed"], "true");
      await ask(`${origin.url}s`, "DELETE");
      assert.equal((await ask(`${url}s`, "HEAD")).status, 404);
    });
  });
}

describe("behind nginx with its defaults, an SSE reader to whom nothing is sent", { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
  const READ_TIMEOUT = "    proxy_read_timeout 1s;";
  const READ_TIMEOUT_MS = 1000;

  test("is there for longer than proxy_read_timeout, thanks to the heartbeat", async (context) => {
    const heartbeatMs = 200;
    const server = new RealServer(context, ["--sse-heartbeat", `${heartbeatMs}ms`]);
    await server.start();
    const { url } = await Nginx.start(context, Number(new URL(server.url).port), plainBlock(READ_TIMEOUT));
    await server.ask("PUT", "s", { headers: TEXT });
    const reader = await EventFollower.start(context, `${url}s?live=sse&offset=-1`);
    // Comments come no faster than that.
    await reader.until(({ comments }) => comments * heartbeatMs * (15 / 16) > 3 * READ_TIMEOUT_MS);
    await server.ask("POST", "s", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "late" });
    await reader.end();
    assert.equal(reader.data, "late");
  });

  test("is cut where the heartbeat is slower than that", async (context) => {
    const origin = await Origin.start(context, { sseHeartbeatMs: 60_000 });
    const { url } = await Nginx.start(context, origin.port, plainBlock(READ_TIMEOUT));
    await ask(`${origin.url}s`, "PUT", { headers: TEXT });
    const reader = await EventFollower.start(context, `${url}s?live=sse&offset=-1`);
    await reader.until(({ isOver }) => isOver);
    assert.equal(reader.comments, 0);
  });
});
