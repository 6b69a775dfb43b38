import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { receiveBody, type BodyUse } from "../../../src/http/context/body.js";
import type { Context } from "../../../src/http/context/context.js";
import { problem } from "../../../src/http/encoding/problems.js";
import { Exchange } from "../../../src/http/exchange/exchange.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";
import type { Responder } from "../../../src/http/answer/respond.js";
import { refuse, type Refused } from "../../../src/stream/rules/outcome.js";
import { httpParts, type HttpParts } from "../../helpers/http-parts.js";
import { RawConnection, type Answer } from "../../helpers/raw-connection.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";
import { BYTES, CHUNKED, codeOf, contentOf, withStream } from "../../helpers/uploads.js";

/** What a head alone is answered, and what the same request says whose body comes with it. */
const REFUSED_BY_HEAD: readonly (readonly [
  title: string,
  method: string,
  target: string,
  headers: Record<string, string>,
  status: number,
  code: string,
])[] = [
  ["an append to no stream", "POST", "none", BYTES, 404, "stream-not-found"],
  ["an append to a closed stream", "POST", "closed", BYTES, 409, "stream-closed"],
  ["an append that closes a closed stream again", "POST", "closed", { ...BYTES, "Stream-Closed": "true" }, 409, "stream-closed"],
  ["an append to a stream kept for its forks", "POST", "kept", BYTES, 410, "stream-gone"],
  ["an append without a content type", "POST", "a", {}, 400, "content-type-missing"],
  ["an append of another content type", "POST", "a", { "Content-Type": "text/html" }, 409, "content-type-mismatch"],
  ["an append to a JSON stream of another content type", "POST", "json", BYTES, 409, "content-type-mismatch"],
  [
    "an append of an epoch that is over",
    "POST",
    "a",
    { ...BYTES, "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "1" },
    403,
    "stale-epoch",
  ],
  ["a create of a stream that is there otherwise", "PUT", "a", { "Content-Type": "text/html" }, 409, "config-mismatch"],
  ["a create of a stream that is closed", "PUT", "closed", BYTES, 409, "config-mismatch"],
  ["a create of a name that forks hold", "PUT", "kept", BYTES, 409, "name-held-by-forks"],
  ["a fork of no stream", "PUT", "b", { ...BYTES, "Stream-Forked-From": "/v1/stream/none" }, 404, "stream-not-found"],
  ["a fork of a stream that is gone", "PUT", "b", { ...BYTES, "Stream-Forked-From": "/v1/stream/kept" }, 409, "fork-source-gone"],
  [
    "a fork of another content type",
    "PUT",
    "b",
    { "Content-Type": "text/html", "Stream-Forked-From": "/v1/stream/a" },
    409,
    "content-type-mismatch",
  ],
];

async function withStreams(context: TestContext): Promise<TestServer> {
  const server = await withStream(context);
  await server.send("POST", "a", { headers: { ...BYTES, "Producer-Id": "p", "Producer-Epoch": "1", "Producer-Seq": "0" }, body: "x" });
  await server.send("PUT", "json", { headers: { "Content-Type": "application/json" } });
  await server.send("PUT", "closed", { headers: { ...BYTES, "Stream-Closed": "true" }, body: "hello" });
  await server.send("PUT", "kept");
  await server.send("PUT", "fork", { headers: { "Stream-Forked-From": "/v1/stream/kept" } });
  await server.send("DELETE", "kept");
  return server;
}

/** All of an answer but the date and what becomes of the connection. */
function gistOf({ status, headers, text }: Answer): object {
  const { date: _date, connection: _connection, "keep-alive": _keepAlive, ...rest } = headers;
  return { status, rest, text };
}

describe("a request that its head disqualifies is refused before the body is read", () => {
  for (const [title, method, target, headers, status, code] of REFUSED_BY_HEAD) {
    test(`${title}: ${status}, in the words for the whole request`, async (context) => {
      const server = await withStreams(context);
      const whole = await server.send(method, target, { headers, body: "hello" });
      assert.deepEqual([whole.status, codeOf(whole)], [status, code]);
      const promised = await server.begin(method, target, { headers: { ...headers, "Content-Length": "1000000" } });
      const chunked = await server.begin(method, target, { headers: { ...headers, "Transfer-Encoding": "chunked" } });
      chunked.write("1\r\nx\r\n");
      const asking = await server.begin(method, target, { headers: { ...headers, "Content-Length": "5", Expect: "100-continue" } });
      for (const connection of [promised, chunked, asking]) {
        const answer = await connection.answer();
        assert.equal(answer.headers["connection"], "close");
        assert.deepEqual(gistOf(answer), gistOf(whole));
      }
      assert.equal(await asking.rest(), "");
      // Nothing is in flight, or a stop would wait for it until its time is over, which never comes here.
      await server.stop();
    });
  }

  test("one that has begun to come, too, and the client may send it to its end", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "none", {
      headers: { ...BYTES, "Content-Length": "2000000" },
      body: Buffer.alloc(1_000_000),
    });
    assert.equal((await connection.answer()).status, 404);
    connection.write(Buffer.alloc(1_000_000));
    assert.equal(await connection.rest(), "");
  });

  test("one that is there is answered on a connection that stays", async (context) => {
    const server = await withStream(context);
    const connection = await server.connect();
    for (let round = 0; round < 2; round += 1) {
      connection.write(requestBytes("POST", "none", { headers: BYTES, body: "hello" }));
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers["connection"]], [404, "keep-alive"]);
    }
  });
});

describe("a request that its head does not disqualify is decided when the body is there", () => {
  test("chunks that are all empty are no data for a closed stream", async (context) => {
    const server = await withStreams(context);
    for (const [headers, status] of [
      [CHUNKED, 400],
      [{ ...CHUNKED, "Stream-Closed": "true" }, 204],
    ] as const) {
      const connection = await server.begin("POST", "closed", { headers });
      await server.send("HEAD", "a");
      connection.write("0\r\n\r\n");
      assert.equal((await connection.answer()).status, status);
    }
  });

  test("the retry of the append that closed the stream", async (context) => {
    const server = await withStream(context);
    const headers = { ...BYTES, "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0", "Stream-Closed": "true" };
    assert.equal((await server.send("POST", "a", { headers, body: "hello" })).status, 200);
    const retry = await server.begin("POST", "a", { headers: { ...headers, "Content-Length": "5" } });
    await server.send("HEAD", "a");
    retry.write("hello");
    assert.equal((await retry.answer()).status, 204);
  });

  test("a sequence number whose predecessor is still on its way", async (context) => {
    const server = await withStream(context);
    const headers = { ...BYTES, "Producer-Id": "p", "Producer-Epoch": "0", "Content-Length": "5" };
    const [first, second] = [
      await server.begin("POST", "a", { headers: { ...headers, "Producer-Seq": "0" } }),
      await server.begin("POST", "a", { headers: { ...headers, "Producer-Seq": "1" } }),
    ];
    await server.send("HEAD", "a");
    first.write("hello");
    assert.equal((await first.answer()).status, 200);
    second.write("world");
    assert.equal((await second.answer()).status, 200);
    assert.equal(await contentOf(server), "helloworld");
  });

  test("JSON is looked at before its producer", async (context) => {
    const server = await startServer(context);
    const headers = { "Content-Type": "application/json", "Producer-Id": "p" };
    await server.send("PUT", "a", { headers });
    await server.send("POST", "a", { headers: { ...headers, "Producer-Epoch": "1", "Producer-Seq": "0" }, body: "1" });
    for (const [body, code] of [
      ["{", "invalid-json"],
      ["2", "stale-epoch"],
    ] as const) {
      const connection = await server.begin("POST", "a", {
        headers: { ...headers, "Producer-Epoch": "0", "Producer-Seq": "0", "Content-Length": "1" },
      });
      await server.send("HEAD", "a");
      connection.write(body);
      assert.equal(codeOf(await connection.answer()), code);
    }
  });

  test("a stream that is closed, deleted or made meanwhile", async (context) => {
    const server = await withStreams(context);
    const headers = { ...BYTES, "Content-Length": "5" };
    const [toClosed, toDeleted, ofMade] = [
      await server.begin("POST", "a", { headers }),
      await server.begin("POST", "fork", { headers }),
      await server.begin("PUT", "new", { headers }),
    ];
    await server.send("HEAD", "a");
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    await server.send("DELETE", "fork");
    await server.send("PUT", "new", { headers: { "Content-Type": "text/html" } });
    for (const [connection, code] of [
      [toClosed, "stream-closed"],
      [toDeleted, "stream-not-found"],
      [ofMade, "config-mismatch"],
    ] as const) {
      connection.write("hello");
      const answer = await connection.answer();
      assert.deepEqual([codeOf(answer), answer.headers["connection"]], [code, "keep-alive"]);
    }
  });
});

/** A server whose requests have bodies for `user`, and what they say to `answer`. */
async function bodiesFor(
  context: TestContext,
  userOf: (responder: Responder, exchange: Exchange) => Pick<BodyUse, "refusal" | "use">,
): Promise<{ parts: HttpParts; open: () => Promise<RawConnection> }> {
  const parts = httpParts();
  const { inFlight, responder } = parts;
  // All that a body asks of a context.
  const bodyContext = { ...parts, settings: { maxAppendBytes: 100 } } as unknown as Context;
  const server = createHttpServer();
  for (const event of ["request", "checkContinue"]) {
    server.on(event, (req, res) => {
      const exchange = new Exchange(req, res, { path: "/", query: "" }, readHeaders(req.rawHeaders), event === "checkContinue");
      inFlight.begin(exchange);
      const use = {
        context: bodyContext,
        exchange,
        name: "a",
        head: { contentType: null },
        isJson: false,
        maxBytes: 100,
        lateRefusal: () => null,
      };
      void receiveBody({ ...use, tooLong: problem("body-too-large"), ...userOf(responder, exchange) });
    });
  }
  await once(server.listen(0, "127.0.0.1"), "listening");
  const connections: RawConnection[] = [];
  const open = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open((server.address() as AddressInfo).port); // it listens on a port
    connections.push(connection);
    return connection;
  };
  context.after(async () => {
    await Promise.all(connections.map((connection) => connection.close()));
    server.close();
  });
  return { parts, open };
}

test("a fault while a request's head is judged is answered once, and the body is not used", async (context) => {
  const { parts, open } = await bodiesFor(context, () => ({
    refusal: () => Promise.reject(new Error("no luck")),
    use: () => assert.fail("it was answered"),
  }));
  const connection = await open();
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nhel");
  assert.equal(codeOf(await connection.answer()), "internal-error");
  connection.write("lo!");
  assert.equal(await connection.rest(), "");
  assert.deepEqual([parts.lines.length, parts.inFlight.size, parts.bodyMemory.bytes], [1, 0, 0]);
});

test("a body that ends, or whose client goes, while its head is judged is not refused for it", async (context) => {
  const looks: ((refusal: Refused) => void)[] = [];
  let looked: () => void = () => undefined;
  const { parts, open } = await bodiesFor(context, (responder, exchange) => ({
    refusal: () => {
      looked();
      return new Promise((resolve) => looks.push(resolve));
    },
    use: () => responder.send(exchange, 204, [], null),
  }));
  for (const [head, then] of [
    ["", "ends"],
    ["", "goes"],
    ["Expect: 100-continue\r\n", "goes"],
  ] as const) {
    const isLooked = new Promise<void>((resolve) => (looked = resolve));
    const connection = await open();
    connection.write(`POST / HTTP/1.1\r\nHost: a\r\n${head}Content-Length: 3\r\n\r\n`);
    await isLooked;
    if (then === "ends") {
      connection.write("abc");
      assert.equal((await connection.answer()).status, 204);
    } else {
      const gone = once(connection.socket, "close");
      connection.socket.destroy();
      await gone;
      // Another round trip: the server has seen the end of the first.
      await (await open()).close();
    }
    for (const refuseNow of looks.splice(0)) refuseNow(refuse("stream-not-found"));
    await new Promise<void>((resolve) => setImmediate(resolve));
    assert.equal(parts.inFlight.size, 0, `${head}${then}`);
  }
});
