import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { JsonFramer } from "../../../src/protocol/json/json-frame.js";
import { DirectRequest } from "../../../src/http/node/direct-request.js";
import { placeOf } from "../../helpers/tokens.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";
import { until } from "../../helpers/until.js";
import { BYTES, CHUNKED, codeOf, contentOf, withStream } from "../../helpers/uploads.js";

describe("a request body", () => {
  test("of the greatest size is taken, told or in chunks", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    assert.equal((await server.send("POST", "a", { headers: BYTES, body: "0123456789" })).status, 204);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
    assert.equal((await connection.answer()).status, 204);
  });

  test("in many pieces comes together", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "300" } });
    for (let piece = 0; piece < 30; piece += 1) {
      connection.write(`${piece % 10}`.repeat(10));
      await server.send("HEAD", "a");
    }
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await contentOf(server)).length, 300);
  });

  test("with trailers is taken without them", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("5\r\nhello\r\n0\r\nStream-Closed: true\r\n\r\n");
    assert.equal((await connection.answer()).headers["stream-closed"], undefined);
    assert.equal(await contentOf(server), "hello");
  });

  test("of chunks that are all empty is empty", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("0\r\n\r\n");
    assert.equal(codeOf(await connection.answer()), "empty-body");
  });

  test("of a request that takes none is passed over", async (context) => {
    const server = await withStream(context);
    const connection = await server.connect();
    connection.write(Buffer.concat([requestBytes("GET", "a", { body: "ignored" }), requestBytes("DELETE", "a", { body: "ignored" })]));
    assert.equal((await connection.answer()).status, 200);
    assert.equal((await connection.answer()).status, 204);
  });
});

describe("a request whose body does not come keeps no headers that nobody reads", () => {
  for (const [title, headers, status] of [
    ["while it is waited for", {}, null],
    ["when it is refused", { "Producer-Id": "p" }, 400],
  ] as const)
    test(title, async (context) => {
      const server = await withStream(context);
      const connection = await server.connect();
      const forget = context.mock.method(DirectRequest.prototype, "forgetHeaders");
      connection.write(requestBytes("POST", "a", { headers: { ...BYTES, ...headers, "Content-Length": "9" } }));
      if (status !== null) assert.equal((await connection.head()).status, status);
      await until(() => forget.mock.callCount() === 1);
    });
});

describe("a request body that is too large", () => {
  test("is refused by its promised length, before it is read", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "11" } });
    const answer = await connection.answer();
    assert.deepEqual([answer.status, codeOf(answer)], [413, "body-too-large"]);
    assert.equal(answer.headers["connection"], "close");
    assert.match(JSON.parse(answer.text).detail, /10 bytes/);
  });

  test("is refused at the chunk that is too much", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    for (const method of ["POST", "PUT"]) {
      const connection = await server.begin(method, method === "PUT" ? "b" : "a", { headers: CHUNKED });
      connection.write("a\r\n0123456789\r\n1\r\nx\r\n");
      assert.equal((await connection.answer()).status, 413);
    }
    assert.equal(await contentOf(server), "");
    assert.equal((await server.send("HEAD", "b")).status, 404);
  });

  test("ends at last though its chunks never do", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 1000 });
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
    connection.write(chunk);
    assert.equal((await connection.answer()).status, 413);
    server.clock.advance(30_000);
    while (!connection.socket.destroyed) {
      connection.write(chunk);
      await server.send("HEAD", "a");
    }
    assert.equal(await contentOf(server), "");
  });
});

describe("an upload that its client gives up", () => {
  for (const [title, headers, part] of [
    ["with a promised length", { ...BYTES, "Content-Length": "100" }, "hello"],
    ["in chunks", CHUNKED, "5\r\nhello\r\n"],
  ] as const) {
    test(`${title} leaves nothing behind`, async (context) => {
      const server = await withStream(context);
      const connection = await server.begin("POST", "a", { headers });
      connection.write(part);
      await server.send("HEAD", "a");
      await connection.close();
      assert.equal(await contentOf(server), "");
      // Nothing is in flight, or a stop would wait for it until its time is over, which never comes here.
      await server.stop();
    });
  }
});

describe("Expect: 100-continue", () => {
  test("is told to go on when the body will be read", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "5", Expect: "100-continue" } });
    assert.equal((await connection.answer()).status, 100);
    connection.write("hello");
    assert.equal((await connection.answer()).status, 204);
  });

  const refused: readonly (readonly [title: string, target: string, headers: Record<string, string>, status: number])[] = [
    ["a body that is too large", "a", { ...BYTES, "Content-Length": "1000000000" }, 413],
    ["an invalid name", "a//b", { ...BYTES, "Content-Length": "5" }, 400],
    ["half a producer", "a", { ...BYTES, "Content-Length": "5", "Producer-Id": "p" }, 400],
  ];
  for (const [title, target, headers, status] of refused) {
    test(`is refused without a 100 for ${title}`, async (context) => {
      const server = await withStream(context);
      const connection = await server.begin("POST", target, { headers: { ...headers, Expect: "100-Continue" } });
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers["connection"]], [status, "close"]);
      assert.equal(await connection.rest(), "");
      await connection.close();
    });
  }

  test("of a request without a body needs no 100", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("GET", "a", { headers: { Expect: "100-continue" } });
    assert.equal((await connection.answer()).status, 200);
  });

  test("something else is 417", async (context) => {
    const server = await withStream(context);
    const answer = await server.send("POST", "a", { headers: { ...BYTES, Expect: "miracles" }, body: "x" });
    assert.deepEqual([answer.status, codeOf(answer)], [417, "expectation-failed"]);
    assert.equal(await contentOf(server), "");
  });
});

describe("a JSON body that does not come at once", () => {
  const JSON_TYPE = { "Content-Type": "application/json" };

  test("is checked in turns of the event loop, a part in each", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: JSON_TYPE });
    const body = Buffer.from(`[${"{},".repeat(2_000_000)}{}]`);
    let turn = 0;
    let isOver = false;
    const bytesByTurn = new Map<number, number>();
    const next = (): void => {
      turn += 1;
      if (!isOver) setImmediate(next);
    };
    next();
    const { add } = JsonFramer.prototype;
    context.mock.method(JsonFramer.prototype, "add", function (this: JsonFramer, part: Buffer) {
      bytesByTurn.set(turn, (bytesByTurn.get(turn) ?? 0) + part.length);
      add.call(this, part);
    });
    // That the platform's parser were asked about the body would be seen here; others in the process may use it meanwhile.
    const parse = context.mock.method(JSON, "parse");
    const answer = await server.send("POST", "a", { headers: JSON_TYPE, body });
    isOver = true;
    const parsed = parse.mock.calls.filter((call) => String(call.arguments[0]).includes("{},{}"));
    assert.deepEqual([answer.status, parsed.length], [204, 0]);
    assert.equal(
      [...bytesByTurn.values()].reduce((sum, bytes) => sum + bytes),
      body.length,
    );
    assert.ok(Math.max(...bytesByTurn.values()) <= 320 * 1024, `${Math.max(...bytesByTurn.values())} bytes in one turn`);
    assert.equal(placeOf((await server.send("GET", "a?offset=now")).headers["stream-next-offset"]), "0_8000004");
  });

  test("is what it would be at once, pipelined or not, appended or at the beginning", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: JSON_TYPE });
    const text = JSON.stringify(Array.from({ length: 40_000 }, (_, index) => ({ index, text: "é🌊\n" })));
    const connection = await server.connect();
    connection.write(
      Buffer.concat([
        requestBytes("POST", "a", { headers: JSON_TYPE, body: text }),
        requestBytes("POST", "a", { headers: JSON_TYPE, body: "1" }),
      ]),
    );
    for (let count = 0; count < 2; count += 1) assert.equal((await connection.answer()).status, 204);
    assert.equal((await server.send("PUT", "b", { headers: JSON_TYPE, body: text })).status, 201);
    await server.send("PUT", "c", { headers: { "Stream-Forked-From": "/v1/stream/a", "Stream-Fork-Offset": "-1" }, body: text });
    const stored = text.slice(1, -1).replaceAll("},{", "},\n{");
    for (const [name, expected] of [
      ["a", `[${stored},\n1]`],
      ["b", `[${stored}]`],
      ["c", `[${stored}]`],
    ] as const) {
      let offset = "-1";
      let all = "";
      for (;;) {
        const answer = await server.send("GET", `${name}?offset=${offset}`);
        all += answer.text.slice(1, -1);
        if (answer.headers["stream-up-to-date"] === "true") break;
        all += ",\n";
        offset = answer.headers["stream-next-offset"] ?? "";
      }
      assert.equal(`[${all}]`, expected, name);
    }
  });

  test("is refused at its end where it is not JSON", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: JSON_TYPE });
    for (const body of [`[${"1,".repeat(100_000)}]`, `${"[".repeat(100_000)}`, `"${"\xff".repeat(100_000)}"`]) {
      const answer = await server.send("POST", "a", { headers: JSON_TYPE, body: Buffer.from(body, "latin1") });
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid-json"]);
    }
    assert.equal((await server.send("GET", "a")).text, "[]");
  });
});
