import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Pipeline } from "../../src/http/pipeline.js";
import { AcceptedSockets } from "../helpers/accepted-sockets.js";
import type { RawConnection } from "../helpers/raw-connection.js";
import { ALL_PATHS, REQUEST_PATHS, takePath } from "../helpers/request-paths.js";
import { requestBytes, startServer } from "../helpers/test-server.js";
import { until } from "../helpers/until.js";

const TEXT = { "Content-Type": "text/plain" };
const TIMEOUT_MS = 12_345;
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const MAX_WAITING_BODY_BYTES = 1024 * 1024;
const SHORTEST = "GET / HTTP/1.1\r\n\r\n";
const WAIT = requestBytes("GET", "a?live=long-poll&offset=now");

describe("requests pipelined on one connection", () => {
  test("see what those before them did, and are answered in order", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    connection.write(
      Buffer.concat([
        requestBytes("PUT", "a", { headers: TEXT }),
        requestBytes("POST", "a", { headers: TEXT, body: "x" }),
        requestBytes("GET", "a"),
        requestBytes("GET", "missing"),
        requestBytes("DELETE", "a"),
        requestBytes("GET", "a"),
      ]),
    );
    const answers: string[] = [];
    for (let at = 0; at < 6; at += 1) {
      const { status, text } = await connection.answer();
      answers.push(status === 200 ? `200 ${text}` : String(status));
    }
    assert.deepEqual(answers, ["201", "204", "200 x", "404", "204", "404"]);
  });

  test("wait while one before them waits", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a", { headers: TEXT });
    const connection = await server.connect();
    connection.write(Buffer.concat([WAIT, requestBytes("POST", "a", { headers: TEXT, body: "x" }), WAIT]));
    await server.clock.armed(TIMEOUT_MS);
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer()).status, 204);
    await server.clock.armed(TIMEOUT_MS, { count: 2 });
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
  });

  test("may have bodies, of any length, and ask to continue", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const connection = await server.connect();
    const long = "y".repeat(1_000_000);
    connection.write(
      Buffer.concat([
        requestBytes("POST", "a", { headers: TEXT, body: "x" }),
        requestBytes("POST", "a", { headers: TEXT, body: long }),
        requestBytes("POST", "a", { headers: { ...TEXT, "Content-Length": "1", Expect: "100-continue" } }),
      ]),
    );
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer()).status, 100);
    connection.write("z");
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await server.send("GET", "a")).text, `x${long}z`);
  });

  for (const path of ALL_PATHS) {
    test(`are refused when too many wait, which ends the connection, on the ${path} path`, async (context) => {
      takePath(context, path);
      const { mock } = context.mock.method(Pipeline.prototype, "inTurn");
      const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
      await server.send("PUT", "a");
      const connection = await server.connect();
      const before = mock.callCount();
      const rest = `${requestBytes("GET", "a").toString().repeat(MAX_WAITING)}${SHORTEST.repeat(3_000)}`;
      connection.write(`${WAIT.toString()}${rest}${requestBytes("PUT", "b", { headers: TEXT, body: "x" }).toString()}`);
      await server.clock.armed(TIMEOUT_MS);
      await server.send("HEAD", "a");
      server.clock.advance(TIMEOUT_MS);
      assert.equal((await connection.answer()).status, 204);
      for (let at = 0; at < MAX_WAITING; at += 1) assert.equal((await connection.answer()).status, 200);
      const { status, text, headers } = await connection.answer();
      assert.deepEqual([status, JSON.parse(text).code, headers.connection], [503, "overloaded", "close"]);
      assert.equal(await connection.rest(), "");
      assert.equal((await server.send("HEAD", "b")).status, 404);
      assert.ok(mock.callCount() - before < MAX_WAITING + 10, "memory is taken for those that are dropped");
    });

    test(`that are dropped behind a live read do not hide that their client has gone, on the ${path} path`, async (context) => {
      takePath(context, path);
      const server = await startServer(context);
      const accepted = new AcceptedSockets(context);
      await server.send("PUT", "a", { headers: TEXT });
      const connection = await server.connect();
      const waiting = requestBytes("GET", "a")
        .toString()
        .repeat(2 * MAX_WAITING);
      connection.write(`${requestBytes("GET", "a?live=sse&offset=now").toString()}${waiting}`);
      await connection.until("upToDate");
      await server.send("HEAD", "a");
      const itsEnd = accepted.otherEndOf(connection.socket);
      assert.equal(itsEnd.isPaused(), false, "the server reads no more");
      connection.socket.destroy();
      // Its last chunk may still be written, and fail.
      if (!itsEnd.closed) await new Promise((resolve) => itsEnd.once("close", resolve));
    });
  }

  test("that wait for 100 Continue, and are refused, leave those before them their answers", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a", { headers: TEXT });
    const connection = await server.connect();
    const last = requestBytes("POST", "a", { headers: { ...TEXT, "Content-Length": "1", Expect: "100-continue" } });
    connection.write(`${WAIT.toString()}${requestBytes("GET", "a").toString().repeat(MAX_WAITING)}${last.toString()}`);
    await server.clock.armed(TIMEOUT_MS);
    await server.send("HEAD", "a");
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
    for (let at = 0; at < MAX_WAITING; at += 1) assert.equal((await connection.answer()).status, 200);
    assert.equal((await connection.answer()).status, 503);
  });

  test("are refused when their heads take too much, and leave nothing behind", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    // Each header takes many times its text.
    const tiny = requestBytes("GET", "a", { headers: Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`a${at}`, ""])) });
    for (let round = 1; round <= 2; round += 1) {
      const connection = await server.connect();
      connection.write(WAIT);
      await server.clock.armed(TIMEOUT_MS, { count: 1 });
      connection.write(Buffer.concat(Array.from({ length: 10 }, () => tiny)));
      await server.send("HEAD", "a");
      server.clock.advance(TIMEOUT_MS);
      const statuses: number[] = [];
      while (statuses.at(-1) !== 503) statuses.push((await connection.answer()).status);
      const taken = statuses.filter((status) => status === 200).length;
      assert.deepEqual(statuses, [204, ...Array<number>(taken).fill(200), 503]);
      assert.ok(taken > 0 && taken < 10, `${taken}`);
      await connection.close();
    }
  });

  for (const path of REQUEST_PATHS) {
    test(`are refused when their bodies take too much, on the ${path} path`, async (context) => {
      takePath(context, path);
      const accepted = new AcceptedSockets(context);
      const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
      await server.send("PUT", "a", { headers: TEXT });
      const body = "x".repeat(15_000);
      for (let round = 1; round <= 2; round += 1) {
        const connection = await server.connect();
        connection.write(WAIT);
        await server.clock.armed(TIMEOUT_MS);
        connection.write(requestBytes("POST", "a", { headers: TEXT, body }).toString().repeat(80));
        const itsEnd = accepted.otherEndOf(connection.socket);
        await until(() => itsEnd.bytesRead > MAX_WAITING_BODY_BYTES + 2 * body.length);
        server.clock.advance(TIMEOUT_MS);
        assert.equal((await connection.answer()).status, 204);
        let taken = 0;
        while (taken < 80 && (await connection.answer()).status === 204) taken += 1;
        assert.ok(taken > 0 && taken * body.length <= MAX_WAITING_BODY_BYTES, `${taken}`);
        await connection.close();
      }
    });
  }

  test("may have many bodies of unknown length, if they are short", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a", { headers: TEXT });
    const connection = await server.connect();
    const chunked = requestBytes("POST", "a", { headers: { ...TEXT, "Transfer-Encoding": "chunked" } });
    connection.write(`${WAIT.toString()}${`${chunked.toString()}1\r\nx\r\n0\r\n\r\n`.repeat(200)}`);
    await server.clock.armed(TIMEOUT_MS);
    await server.send("HEAD", "a");
    server.clock.advance(TIMEOUT_MS);
    for (let at = 0; at <= 200; at += 1) assert.equal((await connection.answer()).status, 204);
    assert.equal((await server.send("GET", "a")).text, "x".repeat(200));
  });

  test("are refused when those of all connections take too much, until some of them have gone", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const accepted = new AcceptedSockets(context);
    let polls = 0;
    /** Connections with as many requests as may wait on one, which have all arrived. */
    const fill = async (count: number): Promise<RawConnection[]> => {
      const connections = await Promise.all(Array.from({ length: count }, () => server.connect()));
      for (const connection of connections)
        connection.write(`${WAIT.toString()}${requestBytes("GET", "a").toString().repeat(MAX_WAITING)}`);
      await server.clock.armed(TIMEOUT_MS, { count: (polls += count) });
      await server.send("HEAD", "a");
      return connections;
    };
    const statusesOf = async (connection: RawConnection | undefined): Promise<number[]> => {
      server.clock.advance(TIMEOUT_MS);
      const statuses: number[] = [];
      for (let at = 0; at <= MAX_WAITING && statuses.at(-1) !== 503; at += 1) statuses.push((await connection?.answer())?.status ?? 0);
      return statuses;
    };
    const count = Math.ceil(MAX_WAITING_BYTES / (MAX_WAITING * 4096));
    const left = await fill(count - 6);
    const ends = left.map(({ socket }) => accepted.otherEndOf(socket));
    await Promise.all(left.map((connection) => connection.close()));
    await until(() => ends.every(({ closed }) => closed));
    const others = await fill(count - 6);
    const [first] = await fill(1);
    assert.deepEqual(new Set(await statusesOf(first)), new Set([204, 200]), "what was left behind no longer counts");
    await Promise.all(others.map(statusesOf));
    await fill(count);
    const [second] = await fill(1);
    assert.deepEqual(new Set(await statusesOf(second)), new Set([204, 503]));
  });

  test("behind one that is refused early are dropped with the connection", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    connection.write(Buffer.concat([requestBytes("PUT", "a//b", { body: "x" }), requestBytes("PUT", "a")]));
    assert.equal((await connection.answer()).status, 400);
    assert.equal(await connection.rest(), "");
    assert.equal((await server.send("HEAD", "a")).status, 404);
  });
});
