import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { ServerOptions } from "../../src/server.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { RealServer } from "../helpers/real-server.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { nextPair } from "../helpers/sse-client.js";
import { requestBytes, startServer, type TestServer } from "../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;
const WAIT = requestBytes("GET", "a?live=long-poll&offset=now");
const POST = requestBytes("POST", "a", { headers: { ...TEXT, Host: "localhost" }, body: "more" });
const CHUNKED =
  "POST /v1/stream/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmore\r\n0\r\n\r\n";

/** The statuses of the next answers, and then nothing but the end. */
async function statuses(connection: RawConnection, count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) found.push((await connection.answer()).status);
  assert.equal(await connection.rest(), "");
  return found;
}

for (const path of ALL_PATHS) {
  describe(`a client that ends its side behind its request, on the ${path} path`, () => {
    async function serverWithText(context: TestContext, options: Partial<ServerOptions> = {}): Promise<TestServer> {
      takePath(context, path);
      const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS, ...options });
      await server.send("PUT", "a", { headers: TEXT, body: "text" });
      return server;
    }

    /** Sends all of it and the end at once. */
    async function sendAndEnd(server: TestServer, ...requests: readonly (Buffer | string)[]): Promise<RawConnection> {
      const connection = await server.connect();
      connection.socket.end(Buffer.concat(requests.map((bytes) => (typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes))));
      return connection;
    }

    for (const [title, bytes, status, text] of [
      ["an append", POST, 204, "textmore"],
      ["an append in chunks", CHUNKED, 204, "textmore"],
      ["a create", requestBytes("PUT", "b", { headers: TEXT, body: "text" }), 201, "text"],
      ["a delete", requestBytes("DELETE", "a"), 204, null],
      ["a refused append", requestBytes("POST", "missing", { headers: TEXT, body: "more" }), 404, "text"],
    ] as const) {
      test(`has the answer to ${title}`, async (context) => {
        const server = await serverWithText(context);
        assert.deepEqual(await statuses(await sendAndEnd(server, bytes), 1), [status]);
        const { status: now, text: stored } = await server.send("GET", status === 201 ? "b" : "a");
        assert.deepEqual(text === null ? now : stored, text ?? 404);
      });
    }

    test("has all of a long answer", async (context) => {
      const server = await serverWithText(context, { chunkBytes: 4 * 1024 * 1024 });
      const body = Buffer.alloc(4 * 1024 * 1024, "x");
      await server.send("PUT", "long", { body });
      const connection = await sendAndEnd(server, requestBytes("GET", "long"));
      assert.ok((await connection.answer()).body.equals(body));
      assert.equal(await connection.rest(), "");
    });

    test("has the answers to all that it pipelined, in order", async (context) => {
      const server = await serverWithText(context);
      const connection = await sendAndEnd(server, POST, requestBytes("PUT", "b"), CHUNKED, requestBytes("GET", "missing"), POST);
      assert.deepEqual(await statuses(connection, 5), [204, 201, 204, 404, 204]);
      assert.equal((await server.send("GET", "a")).text, "textmoremoremore");
    });

    test("is not waited for: a long-poll is answered at once, and what is behind it, too", async (context) => {
      const server = await serverWithText(context);
      assert.deepEqual(await statuses(await sendAndEnd(server, WAIT), 1), [204]);
      const idleTimers = server.clock.pendingCount;
      const connection = await server.connect();
      connection.write(WAIT);
      await server.clock.armed(TIMEOUT_MS);
      connection.socket.end(Buffer.concat([WAIT, POST, WAIT]));
      assert.deepEqual(await statuses(connection, 4), [204, 204, 204, 204]);
      assert.equal(server.clock.pendingCount, idleTimers);
      assert.equal((await server.send("GET", "a")).text, "textmore");
    });

    test("has what there is of a stream that it follows, and then the end", async (context) => {
      const server = await serverWithText(context);
      const connection = await sendAndEnd(server, requestBytes("GET", "a?live=sse&offset=-1"));
      assert.equal((await connection.head()).status, 200);
      const { data, control } = await nextPair(connection);
      assert.deepEqual([data, control["upToDate"]], ["text", true]);
      assert.equal(await connection.rest(), "");
    });

    test("after it had all there is of a stream that it follows has the end", async (context) => {
      const server = await serverWithText(context);
      const connection = await server.begin("GET", "a?live=sse&offset=-1");
      await connection.head();
      await nextPair(connection);
      connection.socket.end();
      assert.equal(await connection.rest(), "");
    });
  });
}

test("a real server answers an append whose client has ended its side", async (context) => {
  const server = new RealServer(context, []);
  await server.start();
  await server.ask("PUT", "a", { headers: TEXT });
  const connection = await RawConnection.open(Number(new URL(server.url).port));
  context.after(() => connection.close());
  connection.socket.end(POST);
  assert.deepEqual(await statuses(connection, 1), [204]);
  assert.equal((await server.ask("GET", "a")).body, "more");
});
