import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { problem } from "../../src/http/problems.js";
import { EMPTY_BODY } from "../../src/http/respond.js";
import { startExchanges } from "../helpers/exchange-server.js";

const COMMON = { "x-content-type-options": "nosniff", "cross-origin-resource-policy": "cross-origin" };
const UPLOAD = { headers: { "Content-Length": "5" } };

function pick(headers: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, headers[name]]));
}

describe("an answer", () => {
  const BODIES: readonly (readonly [title: string, status: number, body: Buffer | null, length: string | undefined])[] = [
    ["with a body has its length", 200, Buffer.from("naïve"), "6"],
    ["with an empty body has the length 0", 201, EMPTY_BODY, "0"],
    ["without a body has no length (204)", 204, null, undefined],
    ["without a body has no length (304)", 304, null, undefined],
  ];
  for (const [title, status, body, length] of BODIES) {
    test(title, async (t) => {
      const server = await startExchanges(t);
      const { connection, exchange } = await server.receive("GET", "a");
      server.context.responder.send(exchange, status, ["Stream-Closed", "true"], body);
      const answer = await connection.answer();
      assert.equal(answer.status, status);
      assert.deepEqual(pick(answer.headers, ["content-length", "transfer-encoding", "stream-closed"]), { "content-length": length, "transfer-encoding": undefined, "stream-closed": "true" });
      assert.deepEqual(answer.body, body ?? EMPTY_BODY);
    });
  }

  test("to a HEAD has no body, and leaves the connection in step", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("HEAD", "a");
    server.context.responder.refuse(exchange, problem("stream-not-found"));
    assert.equal((await connection.answer({ toHead: true })).status, 404);
    const second = await server.receive("GET", "a", {}, connection);
    server.context.responder.send(second.exchange, 204, [], null);
    assert.equal((await connection.answer()).status, 204);
  });

  test("says what every answer says", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    server.context.responder.send(exchange, 204, [], null);
    const { headers } = await connection.answer();
    assert.deepEqual(pick(headers, [...Object.keys(COMMON), "access-control-allow-origin"]), { ...COMMON, "access-control-allow-origin": "*" });
  });

  for (const [origin, allowed] of [["https://a.example", "https://a.example"], ["https://b.example", undefined]] as const) {
    test(`to ${origin} looks at the origins that may call`, async (t) => {
      const server = await startExchanges(t, { settings: { corsOrigin: "https://a.example" } });
      const { connection, exchange } = await server.receive("GET", "a", { headers: { Origin: origin } });
      server.context.responder.send(exchange, 204, [], null);
      assert.deepEqual(pick((await connection.answer()).headers, ["access-control-allow-origin", "vary"]), { "access-control-allow-origin": allowed, vary: "Origin" });
    });
  }

  test("leaves the connection open, and no request in flight", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    assert.equal(server.context.inFlight.size, 1);
    server.context.responder.send(exchange, 204, [], null);
    assert.equal(server.context.inFlight.size, 0);
    assert.equal((await connection.answer()).headers["connection"], "keep-alive");
  });

  test("of a server that stops closes the connection", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    void server.context.inFlight.close();
    server.context.responder.send(exchange, 204, [], null);
    assert.equal((await connection.answer()).headers["connection"], "close");
    assert.equal(await connection.rest(), "");
  });

  for (const parts of [{}, UPLOAD]) {
    test(`that nobody is left to read is not written ${parts === UPLOAD ? "before the body" : ""}`.trim(), async (t) => {
      const server = await startExchanges(t);
      const { connection, exchange } = await server.receive("POST", "a", parts);
      const gone = once(exchange.res, "close");
      await connection.close();
      await gone;
      server.context.responder.refuse(exchange, problem("overloaded"));
      assert.equal(exchange.res.headersSent, false);
      assert.equal(server.context.inFlight.size, 0);
      assert.equal(server.clock.pendingCount, 0);
    });
  }
});

describe("a refusal", () => {
  test("is a problem document with its headers", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    server.context.responder.refuse(exchange, problem("method-not-allowed", { allow: "GET", detail: "No." }));
    const answer = await connection.answer();
    assert.equal(answer.status, 405);
    assert.deepEqual(pick(answer.headers, ["content-type", "cache-control", "allow", "connection", ...Object.keys(COMMON)]), {
      "content-type": "application/problem+json", "cache-control": "no-store", allow: "GET", connection: "keep-alive", ...COMMON,
    });
    assert.deepEqual(JSON.parse(answer.text), { type: "urn:streamdir:error:method-not-allowed", title: "The method is not allowed here", status: 405, code: "method-not-allowed", detail: "No." });
  });

  test("before the body reaches a client that sends it, and closes the connection behind it", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("POST", "a", UPLOAD);
    server.context.responder.refuse(exchange, problem("stream-not-found"));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.headers["connection"], answer.headers["x-content-type-options"]], [404, "close", "nosniff"]);
    assert.equal(server.context.inFlight.size, 0);
    connection.write("12345");
    assert.equal(await connection.rest(), "");
  });

  test("of a client that waits to be told to continue is the end of the connection at once", async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("POST", "a", { headers: { ...UPLOAD.headers, Expect: "100-continue" } });
    server.context.responder.refuse(exchange, problem("stream-not-found"));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.headers["connection"]], [404, "close"]);
    assert.equal(await connection.rest(), "");
    assert.equal(server.clock.pendingCount, 0);
  });
});

test("a client that waits is told to continue once", async (t) => {
  const server = await startExchanges(t);
  const { connection, exchange } = await server.receive("POST", "a", { headers: { ...UPLOAD.headers, Expect: "100-continue" } });
  server.context.responder.sendContinue(exchange);
  assert.equal(await connection.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  assert.equal(exchange.awaitsContinue, false);
  assert.equal(server.context.inFlight.size, 1);
});

test("a preflight is answered without a body", async (t) => {
  const server = await startExchanges(t);
  const { connection, exchange } = await server.receive("OPTIONS", "a", { headers: { Origin: "https://a.example" } });
  server.context.responder.preflight(exchange);
  const { status, headers } = await connection.answer();
  assert.equal(status, 204);
  assert.deepEqual(pick(headers, ["access-control-allow-origin", "access-control-allow-methods"]), { "access-control-allow-origin": "*", "access-control-allow-methods": "GET, HEAD, PUT, POST, DELETE, OPTIONS" });
  assert.match(headers["access-control-allow-headers"] ?? "", /\bStream-Seq\b/);
});

test("an endless answer goes out as it is written, up to the end of the connection", async (t) => {
  const server = await startExchanges(t);
  const { connection, exchange } = await server.receive("GET", "a");
  server.context.responder.beginEndless(exchange, ["Content-Type", "text/event-stream"]);
  exchange.res.write("event: a\n\n");
  const head = await connection.head();
  assert.deepEqual(pick(head.headers, ["content-type", "connection", "transfer-encoding", "content-length", "x-content-type-options"]), {
    "content-type": "text/event-stream", connection: "close", "transfer-encoding": undefined, "content-length": undefined, "x-content-type-options": "nosniff",
  });
  assert.equal(await connection.until("\n\n"), "event: a\n\n");
  assert.equal(server.context.inFlight.size, 1, "it has not come to its end");
  exchange.res.end("b");
  assert.equal(await connection.rest(), "b");
});

test("a problem without a request is a whole answer", async (t) => {
  const server = await startExchanges(t);
  const text = server.context.responder.rawProblem(problem("overloaded", { detail: "naïve" }));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [statusLine, ...lines] = head.split("\r\n");
  assert.equal(statusLine, "HTTP/1.1 503 Service Unavailable");
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(": ")).toLowerCase(), line.slice(line.indexOf(": ") + 2)]));
  assert.deepEqual(pick(headers, ["content-type", "cache-control", "connection", "retry-after", "content-length", ...Object.keys(COMMON)]), {
    "content-type": "application/problem+json", "cache-control": "no-store", connection: "close", "retry-after": "1", "content-length": String(Buffer.byteLength(body)), ...COMMON,
  });
  assert.equal(JSON.parse(body).detail, "naïve");
});
