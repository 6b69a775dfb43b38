import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";
import { placeOf } from "../../helpers/tokens.js";

const TEXT = { "Content-Type": "text/plain" };

async function withStream(context: TestContext, body?: string): Promise<TestServer> {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: TEXT, ...(body === undefined ? {} : { body }) });
  return server;
}

function producer(epoch: number, seq: number): Record<string, string> {
  return { ...TEXT, "Producer-Id": "p", "Producer-Epoch": String(epoch), "Producer-Seq": String(seq) };
}

function codeOf(answer: { readonly text: string }): string {
  return JSON.parse(answer.text).code;
}

describe("POST", () => {
  test("appends and says where the stream ends now", async (context) => {
    const server = await withStream(context);
    const { status, headers, body } = await server.send("POST", "a", { headers: TEXT, body: "hello" });
    assert.equal(status, 204);
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
    assert.equal(headers["stream-closed"], undefined);
    assert.equal(headers["content-type"], undefined);
    assert.equal(headers["content-length"], undefined);
    assert.equal(body.length, 0);
    assert.equal((await server.send("GET", "a")).text, "hello");
  });

  test("takes a body in chunks of any size", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: { ...TEXT, "Transfer-Encoding": "chunked" } });
    for (const chunk of ["h", "el", "lo"]) connection.write(`${chunk.length}\r\n${chunk}\r\n`);
    connection.write("0\r\n\r\n");
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await server.send("GET", "a")).text, "hello");
  });

  test("takes every byte as it is", async (context) => {
    const server = await startServer(context);
    const bytes = Buffer.from(Array.from({ length: 256 * 1024 }, (_, at) => at % 251));
    await server.send("PUT", "b");
    assert.equal((await server.send("POST", "b", { headers: { "Content-Type": "application/octet-stream" }, body: bytes })).status, 204);
    assert.deepEqual((await server.send("GET", "b")).body, bytes);
  });

  test("closes together with the last data", async (context) => {
    const server = await withStream(context);
    const { status, headers } = await server.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "hello" });
    assert.equal(status, 204);
    assert.equal(headers["stream-closed"], "true");
    assert.equal(placeOf(headers["stream-next-offset"]), "0_5");
  });

  test("closes without data, again and again, whatever the content type", async (context) => {
    const server = await withStream(context, "hello");
    for (const headers of [{ "Stream-Closed": "true" }, { "Stream-Closed": "TRUE", "Content-Type": "image/png" }]) {
      const answer = await server.send("POST", "a", { headers });
      assert.equal(answer.status, 204);
      assert.equal(answer.headers["stream-closed"], "true");
      assert.equal(placeOf(answer.headers["stream-next-offset"]), "0_5");
    }
  });

  test("to a closed stream is 409 and says where it ended", async (context) => {
    const server = await withStream(context, "hello");
    await server.send("POST", "a", { headers: { "Stream-Closed": "true" } });
    const answer = await server.send("POST", "a", { headers: TEXT, body: "more" });
    assert.equal(answer.status, 409);
    assert.equal(codeOf(answer), "stream-closed");
    assert.equal(answer.headers["stream-closed"], "true");
    assert.equal(placeOf(answer.headers["stream-next-offset"]), "0_5");
  });

  const refused: readonly (readonly [
    title: string,
    headers: Record<string, string>,
    body: string | undefined,
    status: number,
    code: string,
  ])[] = [
    ["without a body", TEXT, undefined, 400, "empty-body"],
    ["with an empty body", TEXT, "", 400, "empty-body"],
    ["with a Stream-Closed that is not true", { ...TEXT, "Stream-Closed": "false" }, "", 400, "empty-body"],
    ["without a content type", {}, "x", 400, "content-type-missing"],
    ["with another content type", { "Content-Type": "text/html" }, "x", 409, "content-type-mismatch"],
    ["with half a producer", { ...TEXT, "Producer-Id": "p" }, "x", 400, "invalid-producer"],
  ];
  for (const [title, headers, body, status, code] of refused) {
    test(`${title} is ${status} and changes nothing`, async (context) => {
      const server = await withStream(context);
      const answer = await server.send("POST", "a", { headers, ...(body === undefined ? {} : { body }) });
      assert.deepEqual([answer.status, codeOf(answer)], [status, code]);
      assert.equal((await server.send("GET", "a")).text, "");
    });
  }

  test("to a stream that is not there is 404", async (context) => {
    const server = await startServer(context);
    const answer = await server.send("POST", "a", { headers: TEXT, body: "x" });
    assert.deepEqual([answer.status, codeOf(answer)], [404, "stream-not-found"]);
  });

  test("with a Stream-Seq that is not greater byte by byte is 409", async (context) => {
    const server = await withStream(context);
    assert.equal((await server.send("POST", "a", { headers: { ...TEXT, "Stream-Seq": "2" }, body: "x" })).status, 204);
    const answer = await server.send("POST", "a", { headers: { ...TEXT, "Stream-Seq": "10" }, body: "y" });
    assert.deepEqual([answer.status, codeOf(answer)], [409, "stream-seq-regression"]);
  });

  test("of pipelined requests is done and answered in order", async (context) => {
    const server = await withStream(context);
    const connection = await server.connect();
    const numbers = Array.from({ length: 50 }, (_, at) => String(at).padStart(2, "0"));
    connection.write(Buffer.concat(numbers.map((body) => requestBytes("POST", "a", { headers: TEXT, body }))));
    for (const [at] of numbers.entries()) {
      const answer = await connection.answer();
      assert.equal(answer.status, 204);
      assert.equal(placeOf(answer.headers["stream-next-offset"]), `0_${(at + 1) * 2}`);
    }
    assert.equal((await server.send("GET", "a")).text, numbers.join(""));
  });
});

describe("POST by a producer", () => {
  test("of new data is 200 with the producer's place", async (context) => {
    const server = await withStream(context);
    const { status, headers, body } = await server.send("POST", "a", { headers: producer(0, 0), body: "x" });
    assert.equal(status, 200);
    assert.equal(headers["producer-epoch"], "0");
    assert.equal(headers["producer-seq"], "0");
    assert.equal(headers["content-length"], "0");
    assert.equal(headers["content-type"], undefined);
    assert.equal(body.length, 0);
  });

  test("of data that is there is 204 with the highest sequence number", async (context) => {
    const server = await withStream(context);
    for (const seq of [0, 1, 2]) await server.send("POST", "a", { headers: producer(0, seq), body: "x" });
    const { status, headers } = await server.send("POST", "a", { headers: producer(0, 1), body: "x" });
    assert.equal(status, 204);
    assert.equal(headers["producer-seq"], "2");
    assert.equal((await server.send("GET", "a")).text, "xxx");
  });

  test("with a gap is 409 and says what is expected", async (context) => {
    const server = await withStream(context);
    const answer = await server.send("POST", "a", { headers: producer(0, 3), body: "x" });
    assert.deepEqual([answer.status, codeOf(answer)], [409, "producer-gap"]);
    assert.equal(answer.headers["producer-expected-seq"], "0");
    assert.equal(answer.headers["producer-received-seq"], "3");
  });

  test("of an epoch that is over is 403 with the one that took over", async (context) => {
    const server = await withStream(context);
    await server.send("POST", "a", { headers: producer(2, 0), body: "x" });
    const answer = await server.send("POST", "a", { headers: producer(1, 0), body: "x" });
    assert.deepEqual([answer.status, codeOf(answer)], [403, "stale-epoch"]);
    assert.equal(answer.headers["producer-epoch"], "2");
  });

  test("that only closes is 204 with the producer's place", async (context) => {
    const server = await withStream(context);
    const { status, headers } = await server.send("POST", "a", { headers: { ...producer(0, 0), "Stream-Closed": "true" } });
    assert.equal(status, 204);
    assert.equal(headers["producer-seq"], "0");
    assert.equal(headers["stream-closed"], "true");
  });

  test("that closed the stream may be repeated, whatever its body is then", async (context) => {
    const server = await withStream(context);
    const headers = { ...producer(0, 0), "Stream-Closed": "true" };
    assert.equal((await server.send("POST", "a", { headers, body: "end" })).status, 200);
    const retry = await server.send("POST", "a", { headers, body: "other" });
    assert.equal(retry.status, 204);
    assert.equal(retry.headers["stream-closed"], "true");
    assert.equal((await server.send("GET", "a")).text, "end");
  });
});

describe("POST of JSON", () => {
  test("flattens one level, and gives back what was written", async (context) => {
    const server = await startServer(context);
    const headers = { "Content-Type": "application/json" };
    await server.send("PUT", "j", { headers });
    for (const body of ['{"a":12345678901234567890}', "[1e400, [1.0]]", "null"]) {
      assert.equal((await server.send("POST", "j", { headers, body })).status, 204);
    }
    assert.equal((await server.send("GET", "j")).text.replaceAll("\n", ""), '[{"a":12345678901234567890},1e400,[1.0],null]');
  });

  for (const [body, code] of [
    ["[]", "empty-json-array"],
    ["{", "invalid-json"],
    ['"\xff"', "invalid-json"],
  ] as const) {
    test(`${JSON.stringify(body)} is 400`, async (context) => {
      const server = await startServer(context);
      const headers = { "Content-Type": "application/json" };
      await server.send("PUT", "j", { headers });
      const answer = await server.send("POST", "j", { headers, body: Buffer.from(body, "latin1") });
      assert.deepEqual([answer.status, codeOf(answer)], [400, code]);
    });
  }
});
