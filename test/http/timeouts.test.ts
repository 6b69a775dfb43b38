import assert from "node:assert/strict";
import { after, before, describe, mock, test, type TestContext } from "node:test";
import type { RequestLimits } from "../../src/http/http-server.js";
import type { RawConnection } from "../helpers/raw-connection.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { requestBytes, startServer, type TestServer } from "../helpers/test-server.js";

/** Far shorter than a server has them, as this test waits for each; a busy machine keeps this process waiting for half as long. */
const SHORT = {
  headersTimeout: 1000,
  requestTimeout: 2000,
  keepAliveTimeout: 1500,
  connectionsCheckingInterval: 50,
} satisfies Partial<RequestLimits>;

/** How much later than its time a connection may end: Node gives a waiting connection a second more, and the machine may be busy. */
const LATE_MS = 5_000;

/** How often a client that trickles sends a byte. */
const TRICKLE_MS = 20;

const TEXT = { "Content-Type": "text/plain" };
const POST = "POST /v1/stream/a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n";

/** A client that takes its time, and how the server ends that. */
interface Row {
  readonly title: string;
  /** Whole requests that are answered before. */
  readonly answered?: readonly Buffer[];
  /** What is sent at once, and what is sent a byte at a time behind it, again and again. */
  readonly sends?: string;
  readonly trickles?: string;
  /** The least time until the connection ends. */
  readonly afterMs: number;
  /** The code of the answer; `null` for an end without a word. */
  readonly code: string | null;
}

const GET = requestBytes("GET", "a");

/** Every way in which a client can keep a connection by doing little or nothing. */
const ROWS: readonly Row[] = [
  { title: "an idle connection", afterMs: SHORT.headersTimeout, code: "request-timeout" },
  { title: "a head that never ends", sends: "GET /v1/stream/a HTTP/1.1\r\n", afterMs: SHORT.headersTimeout, code: "request-timeout" },
  {
    title: "a trickled head",
    trickles: "GET /v1/stream/a HTTP/1.1\r\nHost: a\r\nX: ".padEnd(4000, "x"),
    afterMs: SHORT.headersTimeout,
    code: "request-timeout",
  },
  {
    title: "a trickled head behind an answer",
    answered: [GET],
    trickles: "GET /v1/stream/a HTTP/1.1\r\nHost: a\r\nX: ".padEnd(4000, "x"),
    afterMs: SHORT.headersTimeout,
    code: "request-timeout",
  },
  {
    title: "a trickled body",
    sends: `${POST}Content-Length: 4000\r\n\r\n`,
    trickles: "x".repeat(4000),
    afterMs: SHORT.requestTimeout,
    code: "request-timeout",
  },
  {
    title: "a trickled body in chunks",
    sends: `${POST}Transfer-Encoding: chunked\r\n\r\n`,
    trickles: "1\r\nx\r\n".repeat(1000),
    afterMs: SHORT.requestTimeout,
    code: "request-timeout",
  },
  { title: "a silent body", sends: `${POST}Content-Length: 4000\r\n\r\n`, afterMs: SHORT.requestTimeout, code: "request-timeout" },
  {
    title: "a body that falls silent",
    sends: `${POST}Content-Length: 4000\r\n\r\nxxx`,
    afterMs: SHORT.requestTimeout,
    code: "request-timeout",
  },
  {
    title: "a body that was to continue, and is silent",
    sends: `${POST}Content-Length: 4000\r\nExpect: 100-continue\r\n\r\n`,
    afterMs: SHORT.requestTimeout,
    code: "request-timeout",
  },
  { title: "a connection that is kept for its next request", answered: [GET], afterMs: SHORT.keepAliveTimeout, code: null },
  {
    title: "one that is kept after several answers",
    answered: [GET, requestBytes("POST", "a", { headers: TEXT, body: "more" }), GET],
    afterMs: SHORT.keepAliveTimeout,
    code: null,
  },
];

/** Sends a byte of `bytes` at once, and another every few milliseconds until the connection ends. */
function trickle({ socket }: RawConnection, bytes: string): void {
  let at = 0;
  const send = (): unknown => socket.write(bytes.charAt(at++ % bytes.length));
  send();
  const timer = setInterval(send, TRICKLE_MS);
  for (const event of ["end", "close"]) socket.once(event, () => clearInterval(timer));
}

/** The code of the connection's last answer when the server has ended it; `null` when it ended without one. */
async function lastCode(connection: RawConnection): Promise<string | null> {
  const text = await connection.rest();
  const found = /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 [45]\d\d [^]*Connection: close\r\n[^]*"code":"([\w-]+)"/.exec(text);
  if (found === null) assert.match(text, /^(HTTP\/1\.1 100 Continue\r\n\r\n)?$/);
  return found?.[1] ?? null;
}

async function impatientServer(context: TestContext, limits: Partial<RequestLimits> = SHORT): Promise<TestServer> {
  const server = await startServer(context, { longPollTimeoutMs: LONG_POLL_MS, maxAppendBytes: 64 * 1024 }, limits);
  await server.send("PUT", "a", { headers: TEXT, body: "text" });
  return server;
}

/** On the server's own clock, and unlike every other time there. */
const LONG_POLL_MS = 123_456;

for (const path of ALL_PATHS) {
  describe(`a client that takes its time is ended, on the ${path} path:`, { concurrency: true }, () => {
    before(() => takePath({ mock }, path));
    after(() => mock.restoreAll());

    for (const { title, answered = [], sends = "", trickles = "", afterMs, code } of ROWS) {
      test(title, async (context) => {
        const server = await impatientServer(context);
        // The server may be ahead of this client: its time begins no earlier than this.
        let startedMs = performance.now();
        const connection = await server.connect();
        for (const bytes of answered) {
          startedMs = performance.now();
          connection.write(bytes);
          await connection.answer();
        }
        connection.write(sends);
        if (trickles !== "") trickle(connection, trickles);
        assert.equal(await lastCode(connection), code);
        const tookMs = performance.now() - startedMs;
        // Node counts in whole milliseconds.
        assert.ok(tookMs >= afterMs - 2 && tookMs < afterMs + LATE_MS, `it took ${tookMs} ms`);
        assert.equal((await server.send("GET", "a")).text.slice(0, 4), "text", "others are served");
      });
    }
  });
}

for (const path of ALL_PATHS) {
  describe(`a client that is refused and goes on sending, on the ${path} path`, () => {
    const TOO_LONG = `${POST}Content-Length: 1000000\r\n\r\n`;

    for (const { title, isTrickling } of [
      { title: "nothing", isTrickling: false },
      { title: "a little at a time", isTrickling: true },
    ]) {
      test(`${title}, is cut after 30 s`, async (context) => {
        takePath(context, path);
        const server = await impatientServer(context, {});
        const connection = await server.connect();
        connection.write(TOO_LONG);
        assert.equal((await connection.answer()).status, 413);
        if (isTrickling) trickle(connection, "x");
        await server.clock.armed(30_000);
        server.clock.advance(29_999);
        await server.send("HEAD", "a");
        assert.equal(connection.socket.readableEnded, false);
        server.clock.advance(1);
        assert.equal(await connection.rest(), "");
      });
    }

    test("is cut sooner where its request takes too long in all", async (context) => {
      takePath(context, path);
      const server = await impatientServer(context);
      const connection = await server.connect();
      connection.write(TOO_LONG);
      assert.equal((await connection.answer()).status, 413);
      assert.equal(await connection.rest(), "");
    });
  });

  describe(`a long-poll outlives all that is not its own time, on the ${path} path`, () => {
    /** Resolves when an idle connection and a kept one of the same server have been ended. */
    async function limitsPassed(server: TestServer): Promise<void> {
      const kept = await server.begin("GET", "a");
      await kept.answer();
      await Promise.all([kept.rest(), (await server.connect()).rest()]);
    }

    test("the times of a request", async (context) => {
      takePath(context, path);
      const server = await impatientServer(context);
      const connection = await server.begin("GET", "a?live=long-poll&offset=now");
      await server.clock.armed(LONG_POLL_MS);
      await limitsPassed(server);
      server.clock.advance(LONG_POLL_MS);
      assert.equal((await connection.answer()).status, 204);
    });

    test("the times of slow answers before it", async (context) => {
      takePath(context, path);
      const server = await impatientServer(context);
      const body = Buffer.alloc(64 * 1024, "x");
      await server.send("PUT", "long", { body });
      for (let count = 0; count < 15; count += 1)
        await server.send("POST", "long", { headers: { "Content-Type": "application/octet-stream" }, body });
      const connection = await server.connect();
      connection.socket.pause();
      // More than the system keeps between the two.
      const READS = 12;
      connection.write(
        Buffer.concat([
          ...Array.from({ length: READS }, () => requestBytes("GET", "long")),
          requestBytes("GET", "a?live=long-poll&offset=now"),
        ]),
      );
      while (connection.socket.bytesRead === 0) await server.send("HEAD", "a");
      // Most of the time that a client has to take something of its answer.
      server.clock.advance(55_000);
      connection.socket.resume();
      for (let count = 0; count < READS; count += 1) assert.equal((await connection.answer()).body.length, 16 * body.length);
      await server.clock.armed(LONG_POLL_MS);
      // Twice that time, and the limits of requests too.
      server.clock.advance(120_000);
      await limitsPassed(server);
      server.clock.advance(LONG_POLL_MS - 120_000);
      assert.equal((await connection.answer()).status, 204);
    });
  });
}
