import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { RequestRates } from "../../../src/http/access/request-rates.js";
import type { Right } from "../../../src/auth/rights/caller.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import type { Answer } from "../../helpers/raw-connection.js";
import { REQUEST_PATHS, takePath, type RequestPath } from "../../helpers/request-paths.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

const BYTES = { "Content-Type": "application/octet-stream" };

/** A server with a stream `a` of 1,000 bytes, made a minute ago from another address. */
async function limited(context: TestContext, path: RequestPath, rateLimit: string, more: object = {}): Promise<TestServer> {
  takePath(context, path);
  const server = await startServer(context, { rateLimit, insecure: true, longPollTimeoutMs: 5_000, ...more });
  await server.send("PUT", "a", { headers: BYTES, body: Buffer.alloc(1000, "x"), from: "127.0.0.99" });
  server.clock.advance(60_000);
  return server;
}

function told({ status, headers, text }: Answer): readonly [number, string | undefined, string | undefined] {
  return [status, headers["retry-after"], status < 400 || text === "" ? undefined : (JSON.parse(text) as { code: string }).code];
}

for (const path of REQUEST_PATHS) {
  describe(`a rate of requests, ${path} path`, () => {
    test("counts every operation, refuses the next before any work, and lets others be", async (context) => {
      const server = await limited(context, path, "6");
      const asked = [
        ["PUT", "b", 201],
        ["POST", "a", 204],
        ["GET", "a?offset=-1", 200],
        ["HEAD", "a", 200],
        ["GET", "none", 404],
        ["DELETE", "b", 204],
      ] as const;
      for (const [method, target, status] of asked) {
        const answer = await server.send(method, target, method === "POST" ? { headers: BYTES, body: "y" } : { headers: BYTES });
        assert.equal(answer.status, status, method);
      }
      for (const method of ["PUT", "POST", "GET", "DELETE"])
        assert.deepEqual(told(await server.send(method, "c", { headers: BYTES, body: "z" })), [429, "1", "rate-limited"], method);
      const head = await server.send("HEAD", "a");
      assert.deepEqual([head.status, head.headers["retry-after"]], [429, "1"]);
      assert.equal((await server.send("GET", "a", { from: "127.0.0.2" })).status, 200);
      assert.equal((await server.send("GET", "c", { from: "127.0.0.2" })).status, 404);
      server.clock.advance(1000);
      assert.equal((await server.send("GET", "a")).status, 200);
    });

    test("does not count health checks, pages and preflights", async (context) => {
      const server = await limited(context, path, "1");
      for (let round = 0; round < 3; round += 1) {
        assert.equal((await server.send("GET", "/health")).status, 200);
        assert.equal((await server.send("GET", "/")).status, 200);
        assert.equal((await server.send("OPTIONS", "a")).status, 204);
      }
      assert.equal((await server.send("GET", "a")).status, 200);
    });

    test("counts what is refused before anybody is known", async (context) => {
      const file = new AuthFile();
      file.token("reader", [{ streams: ["**"], allow: ["read"] }]);
      file.write();
      takePath(context, path);
      const server = await startServer(context, { rateLimit: "2", auth: file.path, corsOrigin: "https://app.example" });
      for (const [method, target, headers, status] of [
        ["GET", "a?access_token=x", {}, 400],
        ["GET", "a?ticket=a&ticket=b", {}, 400],
        ["POST", "a", { ...BYTES, Origin: "https://evil.example" }, 403],
        ["GET", "/v1/stream/__ds/streams?access_token=x", {}, 400],
        ["POST", "/v1/stream/__ds/tickets", { Origin: "https://evil.example" }, 403],
      ] as const) {
        const statuses: number[] = [];
        for (let round = 0; round < 3; round += 1) statuses.push((await server.send(method, target, { headers })).status);
        assert.deepEqual(statuses, [status, status, 429], target);
        server.clock.advance(60_000);
      }
    });

    test("counts many requests of one connection", async (context) => {
      const server = await limited(context, path, "3");
      const connection = await server.connect();
      connection.write(Buffer.concat(Array.from({ length: 5 }, () => requestBytes("GET", "a?offset=now"))));
      const statuses: number[] = [];
      for (let count = 0; count < 5; count += 1) statuses.push((await connection.answer()).status);
      assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
    });

    test("verifies no signature for an address that has sent too many wrong ones", async (context) => {
      const file = new AuthFile();
      const token = file.token("reader", [{ streams: ["**"], allow: ["read"] }]);
      file.grantJwts([{ streams: ["**"], allow: ["read"] }]);
      file.write();
      takePath(context, path);
      const server = await startServer(context, { rateLimit: "3", auth: file.path });
      const jwtFor = (sub: string): string => file.jwt(server.clock.nowMs(), { sub });
      const ask = async (credential: string, target = "none") =>
        told(await server.send("GET", target, { headers: { Authorization: `Bearer ${credential}` } }));
      const known = jwtFor("known");
      assert.equal((await ask(known))[0], 404);
      for (let round = 0; round < 3; round += 1) assert.equal((await ask(`${jwtFor(`s${round}`)}A`))[0], 401);
      const refused = [429, "1", "rate-limited"];
      assert.deepEqual(await ask(`${jwtFor("forged")}A`), refused);
      assert.deepEqual(await ask(jwtFor("new")), refused, "right or wrong, it is not looked at");
      assert.deepEqual(await ask(jwtFor("new"), "__ds/streams"), refused);
      assert.equal((await ask(known))[0], 404, "what is remembered needs no verifying");
      assert.equal((await ask(token))[0], 404, "nor does a token");
      server.clock.advance(1000);
      assert.equal((await ask(jwtFor("new")))[0], 404);
    });

    test("refuses a body before it is sent", async (context) => {
      const server = await limited(context, path, "1");
      await server.send("HEAD", "a");
      const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "1000", Expect: "100-continue" } });
      assert.equal((await connection.answer()).status, 429);
    });
  });

  describe(`a rate of bytes, ${path} path`, () => {
    const cases: readonly (readonly [what: string, method: string, target: string, headers: Record<string, string>, waits: number])[] = [
      ["an append of known length", "POST", "a", { "Content-Length": "1000" }, 10],
      ["an append in chunks", "POST", "a", { "Transfer-Encoding": "chunked" }, 10],
      ["a create", "PUT", "new", { "Content-Length": "1000" }, 10],
      ["a read", "GET", "a", {}, 10],
      ["a long-poll that need not wait", "GET", "a?live=long-poll&offset=-1", {}, 10],
      ["a HEAD", "HEAD", "a", {}, 0],
    ];
    for (const [what, method, target, headers, waits] of cases) {
      test(`charges ${what}`, async (context) => {
        const server = await limited(context, path, "50,100");
        const isChunked = "Transfer-Encoding" in headers;
        const body = isChunked ? `3e8\r\n${"y".repeat(1000)}\r\n0\r\n\r\n` : "y".repeat(1000);
        const connection = await server.connect();
        connection.write(requestBytes(method, target, { headers: { ...BYTES, ...headers } }));
        if (method !== "GET" && method !== "HEAD") connection.write(body);
        assert.ok((await connection.answer({ toHead: method === "HEAD" })).status < 300);
        const { status, headers: told } = await server.send("HEAD", "a");
        assert.deepEqual([status, told["retry-after"]], waits === 0 ? [200, undefined] : [429, String(waits)]);
        server.clock.advance(waits * 1000);
        assert.equal((await server.send("HEAD", "a")).status, 200);
      });
    }

    test("charges no body that is refused for its length, and no answer without one", async (context) => {
      const server = await limited(context, path, "50,2000", { maxAppendBytes: 1000 });
      const { status } = await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(1001) });
      assert.equal(status, 413);
      const { headers } = await server.send("GET", "a?offset=-1");
      for (let round = 0; round < 5; round += 1)
        assert.equal((await server.send("GET", "a?offset=-1", { headers: { "If-None-Match": headers["etag"] ?? "" } })).status, 304);
    });

    test("does not charge live readers for what they are sent", async (context) => {
      const server = await limited(context, path, "50,100");
      const sse = await server.begin("GET", "a?live=sse&offset=-1");
      await sse.until("upToDate");
      const poll = await server.begin("GET", "a?live=long-poll&offset=now");
      await server.clock.armed(5_000);
      await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(1000, "y"), from: "127.0.0.2" });
      assert.equal((await poll.answer()).body.length, 1000);
      assert.equal((await server.send("HEAD", "a")).status, 200);
    });
  });
}

describe("who is counted", () => {
  const rate = { requests: 2, bytes: null };
  const right = (grant: number, own: Right["rate"]): Right => ({ grant, rate: own });
  const rates = (rateLimit: string): RequestRates => new RequestRates(rateLimit, new ManualClock());
  const from = (client: string): ReturnType<typeof bareExchange> => Object.assign(bareExchange(), { client });

  /** How many requests of each sender in turn are admitted, of five. */
  function admitted(all: RequestRates, caller: { readonly id: string | null } | null, client: string, held: Right | null): number {
    return Array.from({ length: 5 }, () => all.refusalOf(from(client), caller, held)).filter((refusal) => refusal === null).length;
  }

  test("is the caller, wherever it comes from, and else the address", () => {
    const all = rates("3");
    const ci = { id: "token ci" };
    assert.equal(admitted(all, ci, "192.0.2.1", right(0, null)), 3);
    assert.equal(admitted(all, ci, "192.0.2.2", right(1, null)), 0);
    assert.equal(admitted(all, { id: "token other" }, "192.0.2.1", null), 3);
    assert.equal(admitted(all, { id: null }, "192.0.2.1", right(0, null)), 3);
    // A wrong credential counts for its address too.
    assert.equal(admitted(all, null, "192.0.2.1", null), 0);
    assert.equal(admitted(all, null, "192.0.2.2", null), 3);
  });

  test("is the caller's grant where that has a rate of its own, also without one for all", () => {
    for (const rateLimit of ["off", "3"]) {
      const all = rates(rateLimit);
      const ci = { id: "token ci" };
      assert.equal(admitted(all, ci, "192.0.2.1", right(0, rate)), 2);
      assert.equal(admitted(all, ci, "192.0.2.1", right(1, rate)), 2);
      assert.equal(admitted(all, ci, "192.0.2.1", right(2, null)), rateLimit === "off" ? 5 : 3);
      assert.equal(admitted(all, { id: null }, "192.0.2.1", right(0, rate)), 2);
      assert.equal(admitted(all, { id: null }, "192.0.2.2", right(0, rate)), 2);
    }
  });

  test("has its bytes charged only where they are limited", () => {
    const [plain, withBytes] = [from("192.0.2.1"), from("192.0.2.1")];
    rates("3").refusalOf(plain, null, null);
    assert.equal(plain.account, null);
    const all = rates("3,10");
    all.refusalOf(withBytes, null, null);
    withBytes.account?.charge(100);
    const refusal = all.refusalOf(from("192.0.2.1"), null, null);
    assert.deepEqual([refusal?.code, refusal?.retryAfterSeconds], ["rate-limited", 10]);
    assert.equal(refusal?.detail, "The limit is 3 requests a second, and 10 bytes.");
  });
});
