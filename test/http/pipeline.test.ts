import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AcceptedSockets } from "../helpers/accepted-sockets.js";
import type { RawConnection } from "../helpers/raw-connection.js";
import { requestBytes, startServer } from "../helpers/test-server.js";
import { until } from "../helpers/until.js";

const TEXT = { "Content-Type": "text/plain" };
const TIMEOUT_MS = 12_345;
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
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

  test("are refused when too many wait, and read no faster than they are answered", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    const accepted = new AcceptedSockets(context);
    await server.send("PUT", "a");
    const connection = await server.connect();
    connection.write(WAIT);
    await server.clock.armed(TIMEOUT_MS);
    connection.write(
      requestBytes("GET", "a")
        .toString()
        .repeat(MAX_WAITING + 10),
    );
    // More than the system would buffer between the two.
    connection.write(requestBytes("GET", "a").toString().repeat(400_000));
    const { socket } = connection;
    const itsEnd = accepted.otherEndOf(socket);
    await until(() => itsEnd.isPaused() || socket.writableLength === 0);
    await server.send("HEAD", "a");
    assert.ok(itsEnd.isPaused(), "the server reads on");
    assert.ok(socket.writableLength > 0, "the client could send all of it");
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
    for (let at = 0; at < MAX_WAITING; at += 1) assert.equal((await connection.answer()).status, 200);
    const { status, text } = await connection.answer();
    assert.deepEqual([status, JSON.parse(text).code], [503, "overloaded"]);
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
      for (let at = 0; at < 11; at += 1) statuses.push((await connection.answer()).status);
      const taken = statuses.filter((status) => status === 200).length;
      assert.deepEqual(statuses, [204, ...Array<number>(taken).fill(200), ...Array<number>(10 - taken).fill(503)]);
      assert.ok(taken > 0 && taken < 10, `${taken}`);
      await connection.close();
    }
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
      for (let at = 0; at <= MAX_WAITING; at += 1) statuses.push((await connection?.answer())?.status ?? 0);
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
