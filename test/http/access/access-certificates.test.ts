import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { Agent, request, type RequestOptions } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import type { Settings } from "../../../src/options.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { ask as askOver2 } from "../../helpers/secure-server.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const AUTHORITY = makeAuthority();
const STRANGERS = makeAuthority();

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** How far the time of certificates is ahead of the tests' clock. */
const AHEAD_MS = Date.now() - Date.UTC(2026, 0, 1);

type Ask = (
  method: string,
  target: string,
  options?: { as?: string | readonly string[]; by?: typeof AUTHORITY; headers?: Record<string, string>; body?: string },
) => Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>;

/** A server whose clients may have certificates: `users/NAME/…` is their own. */
async function start(
  context: TestContext,
  corsOrigin = "auto",
  settings: Partial<Settings> = {},
  forAll: Parameters<AuthFile["grantPublic"]>[0] = [],
): Promise<{ ask: Ask; file: AuthFile; server: TestServer }> {
  const dir = tempDir();
  const file = new AuthFile();
  file.grantCertificates([{ streams: ["users/{sub}/**"], allow: OPERATIONS }]);
  file.grantPublic(forAll);
  file.write();
  const names = ["localhost", "own.example", "*.wild.example", "192.0.2.1"];
  const { cert, key } = AUTHORITY.issue({ names, commonName: "localhost" });
  const paths = { tlsCert: join(dir, "cert.pem"), tlsKey: join(dir, "key.pem"), clientCa: join(dir, "ca.pem") };
  writeFileSync(paths.tlsCert, cert);
  writeFileSync(paths.tlsKey, key, { mode: 0o600 });
  writeFileSync(paths.clientCa, AUTHORITY.ca);
  const server = await startServer(context, { auth: file.path, corsOrigin, ...paths, ...settings });
  const { port } = server;
  const ask: Ask = async (method, target, { as, by = AUTHORITY, headers = {}, body } = {}) => {
    const own = as === undefined ? {} : by.issue({ names: [], commonName: as, client: true });
    const path = target.startsWith("/") ? target : `/v1/stream/${target}`;
    const options = { host: "localhost", port, method, path, ca: AUTHORITY.ca, agent: false, headers };
    const sent = request({ ...options, ...own, servername: "localhost" });
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage]; // the event's
    return { status: answer.statusCode ?? 0, text: await text(answer), headers: answer.headers };
  };
  return { ask, file, server };
}

describe("a client certificate", () => {
  test("is a credential, and its common name the sub", async (context) => {
    const { ask } = await start(context);
    assert.equal((await ask("PUT", "users/alice/a", { as: "alice", body: "x" })).status, 201);
    assert.equal((await ask("GET", "users/alice/a", { as: "alice" })).text, "x");
    assert.equal((await ask("GET", "users/alice/a", { as: "bob" })).status, 403);
    assert.equal((await ask("GET", "users/alice/a")).status, 401);
  });

  for (const [title, name] of [
    ["..", ".."],
    ["a name of two dots within", "a..b"],
    ["*", "*"],
    ["**", "**"],
    ["a slash", "a/b"],
    ["a NUL", "alice\0"],
    ["a NUL before another's name", "alice\0.example"],
    ["a line break", "alice\nCN=bob"],
    ["a placeholder", "{sub}"],
    ["256 characters", "a".repeat(256)],
    ["60,000 characters", "a".repeat(60_000)],
    ["an empty name", ""],
    ["no name", []],
    ["two names", ["alice", "alice"]],
    ["a name and an empty one", ["alice", ""]],
  ] as const)
    test(`with ${title} is a wrong credential, also for what is public`, async (context) => {
      const { ask, file, server } = await start(context, "auto", {}, [{ streams: ["news", "users/alice/**"], allow: ["read"] }]);
      const own = file.token("owner", [{ streams: ["**"], allow: ["create"] }]);
      file.write();
      await server.server.reload();
      assert.equal((await ask("PUT", "news", { headers: { Authorization: `Bearer ${own}`, "Content-Type": "text/plain" } })).status, 201);
      assert.equal((await ask("GET", "news")).status, 200, "without a certificate");
      for (const target of ["news", "users/alice/a", "news?offset=-1&live=sse"]) {
        const { status, text } = await ask("GET", target, { as: name });
        assert.deepEqual([status, (JSON.parse(text) as { code: string }).code], [401, "invalid-token"], target);
      }
    });

  test("with the longest name is a credential", async (context) => {
    const { ask } = await start(context);
    const name = "ä".repeat(255);
    assert.equal((await ask("PUT", `users/${encodeURIComponent(name)}/a`, { as: name, body: "x" })).status, 201);
  });

  test("that another authority has signed ends the connection", async (context) => {
    const { ask } = await start(context);
    await assert.rejects(ask("GET", "users/alice/a", { as: "alice", by: STRANGERS }));
  });

  test("comes after a token, also where that is wrong", async (context) => {
    const { ask } = await start(context);
    assert.equal((await ask("GET", "users/alice/a", { as: "alice", headers: { Authorization: "Bearer x" } })).status, 401);
    assert.equal((await ask("GET", "users/alice/a?ticket=x", { as: "alice" })).status, 401);
  });

  const change = { as: "alice", headers: { "Content-Type": "text/plain", Origin: "https://example.com" }, body: "x" };
  test("does not let any page change something: the browser adds it by itself", async (context) => {
    for (const corsOrigin of ["auto", "*"]) {
      const { ask } = await start(context, corsOrigin);
      assert.equal((await ask("PUT", "users/alice/a", change)).status, 403);
      const own = { ...change, headers: { ...change.headers, Origin: "https://localhost" } };
      assert.equal((await ask("PUT", "users/alice/a", own)).status, 403, "a page of another port");
    }
  });

  const foreign = { Origin: "https://example.com" };
  test("lets no page of another site read anything that is not public: some browsers add it to each request", async (context) => {
    const { ask } = await start(context, "auto", {}, [{ streams: ["news"], allow: ["read", "create"] }]);
    await ask("PUT", "users/alice/a", { as: "alice", headers: { "Content-Type": "text/plain" }, body: "secret" });
    assert.equal((await ask("PUT", "news", { headers: { "Content-Type": "text/plain" } })).status, 201);
    for (const target of ["users/alice/a", "users/alice/a?offset=-1&live=sse", "__ds/streams", "/metrics"]) {
      const { status, text, headers } = await ask("GET", target, { as: "alice", headers: foreign });
      assert.equal(status, 403, `${target}: ${text}`);
      assert.match(text, /"code":"origin-not-allowed"/);
      assert.match(String(headers.vary), /Origin|\*/, "what a cache has for our own pages is not for others");
    }
    const facts = await ask("GET", "__ds/ui/facts", { as: "alice", headers: foreign });
    assert.doesNotMatch(facts.text, /alice/);
    assert.equal((await ask("GET", "news", { as: "alice", headers: foreign })).status, 200);
    const own = await ask("GET", "users/alice/a", { as: "alice" });
    assert.deepEqual([own.text, own.headers.vary, own.headers["access-control-allow-credentials"]], ["secret", "*", undefined]);
  });

  test("lets pages that are named use it, and have the browser add it", async (context) => {
    const { ask } = await start(context, "https://example.com");
    await ask("PUT", "users/alice/a", { as: "alice", headers: { ...foreign, "Content-Type": "text/plain" }, body: "x" });
    for (const answer of [
      await ask("GET", "users/alice/a", { as: "alice", headers: foreign }),
      await ask("OPTIONS", "users/alice/a", { headers: { ...foreign, "Access-Control-Request-Method": "PUT" } }),
    ]) {
      const { "access-control-allow-credentials": credentials, "access-control-allow-origin": origin } = answer.headers;
      assert.deepEqual([origin, credentials], ["https://example.com", "true"]);
    }
    const other = await ask("GET", "users/alice/a", { as: "alice", headers: { Origin: "https://other.example" } });
    assert.deepEqual([other.status, other.headers["access-control-allow-credentials"]], [403, undefined]);
  });

  for (const [host, status] of [
    ["own.example", 201],
    ["OWN.example:4437", 201],
    ["192.0.2.1:4437", 201],
    ["a.wild.example", 403],
    ["rebound.example", 403],
  ] as const)
    test(`${status === 201 ? "lets" : "does not let"} a page of ${host} use it, by the names of the server's certificate`, async (context) => {
      const { ask } = await start(context);
      const headers = { ...change.headers, Host: host, Origin: `https://${host.toLowerCase()}` };
      const answer = await ask("PUT", "users/alice/a", { ...change, headers });
      assert.equal(answer.status, status, answer.text);
    });

  test("counts until it ends, and so does what was asked for with it", async (context) => {
    const { server, ask } = await start(context);
    const asAlice = { as: "alice", headers: { "Content-Type": "text/plain" } };
    assert.equal((await ask("PUT", "users/alice/a", asAlice)).status, 201);
    server.clock.advance(88 * DAY_MS + AHEAD_MS);
    const asked = await ask("POST", "__ds/tickets", {
      ...asAlice,
      body: JSON.stringify({ stream: "users/alice/a", expiresIn: 7 * 24 * 3600 }),
    });
    const { expiresAt } = JSON.parse(asked.text) as { expiresAt: string }; // its answer
    assert.ok(Date.parse(expiresAt) <= server.clock.nowMs() + 3 * DAY_MS, expiresAt);
    server.clock.advance(3 * DAY_MS);
    assert.equal((await ask("GET", "users/alice/a", asAlice)).status, 401);
  });

  test("counts until it ends for a live read, and for a connection that began with it", async (context) => {
    const { server } = await start(context, "auto", { sseLifetimeMs: DAY_MS, sseHeartbeatMs: HOUR_MS });
    server.clock.advance(AHEAD_MS);
    const own = AUTHORITY.issue({ names: [], commonName: "alice", client: true, until: new Date(Date.now() + 2 * HOUR_MS) });
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ...own, ca: AUTHORITY.ca });
    context.after(() => agent.destroy());
    const ask = async (method: string, target: string, more: RequestOptions = {}) => {
      const options = { host: "localhost", port: server.port, method, path: `/v1/stream/users/alice/a${target}` };
      const sent = request({ ...options, agent, headers: { "Content-Type": "text/plain" }, ...more }).end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage]; // the event's
      return { answer, isReused: sent.reusedSocket };
    };
    const made = await ask("PUT", "");
    assert.equal(made.answer.statusCode, 201);
    await text(made.answer);
    const live = await ask("GET", "?offset=-1&live=sse", { agent: false, ca: AUTHORITY.ca, ...own });
    assert.equal(live.answer.statusCode, 200);
    const ended = new Promise<void>((resolve) => live.answer.on("close", resolve));
    // What its client is given to take the end goes by at the same moment, and it is cut.
    live.answer.on("error", () => undefined).resume();
    server.clock.advance(3 * HOUR_MS);
    await ended;
    const late = await ask("GET", "");
    assert.deepEqual([late.answer.statusCode, late.isReused], [401, true]);
    late.answer.resume();
  });

  test("lets the pages that are named", async (context) => {
    const { ask } = await start(context, "https://example.com");
    assert.equal((await ask("PUT", "users/alice/a", change)).status, 201);
  });

  for (const version of ["1.1", "2"])
    for (const [scheme, name, status] of [
      ["https", "streams.example", 201],
      ["http", "streams.example", 403],
      ["https", "own.example", 201],
      ["http", "own.example", 403],
    ] as const)
      test(`${status === 201 ? "lets" : "does not let"} pages of ${name} by ${scheme}: HTTP/${version}`, async (context) => {
        const { ask, server } = await start(context, "auto", name === "own.example" ? {} : { allowHost: name });
        const headers = { "Content-Type": "text/plain", Origin: `${scheme}://${name}` };
        if (version === "1.1") {
          const sent = { as: "alice", headers: { ...headers, Host: name }, body: "x" };
          return assert.equal((await ask("PUT", "users/alice/a", sent)).status, status);
        }
        const own = AUTHORITY.issue({ names: [], commonName: "alice", client: true });
        const session = connect(`https://localhost:${server.port}`, { ca: AUTHORITY.ca, ...own });
        const sent = { headers: { ...headers, ":authority": name }, body: "x" };
        const answer = await askOver2(session, "PUT", "users/alice/a", sent);
        session.destroy();
        assert.equal(answer.status, status, answer.body);
      });
});
