import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { REQUEST_LIMITS } from "../src/http/http-server.js";
import { EventLoopMeter } from "../src/metrics/process-figures.js";
import { createHandler, createServer, StartError, type ServerOptions, type StreamHandler } from "../src/server.js";
import { RawConnection } from "./helpers/raw-connection.js";
import { pretendPlatform } from "./helpers/platform.js";
import { startNode } from "./helpers/process.js";
import { requestBytes, startServer } from "./helpers/test-server.js";
import { tempDir } from "./helpers/temp-dir.js";

const TEXT = { "Content-Type": "text/plain" };
const TIMEOUT_MS = 12_345;
const SHUTDOWN_MS = 23_456;
const DELAY_MS = 34_567;

async function startError(options: Partial<ServerOptions>): Promise<StartError> {
  try {
    await (await createServer({ dir: tempDir(), port: 0, logLevel: "silent", ...options })).close();
  } catch (error) {
    assert.ok(error instanceof StartError);
    assert.doesNotMatch(error.message, /[\r\n]/);
    return error;
  }
  return assert.fail("it started");
}

describe("a server says where it is", () => {
  test("with its real port", async (context) => {
    const { server } = await startServer(context);
    assert.ok(server.port > 0);
    assert.equal(server.url, `http://127.0.0.1:${server.port}/v1/stream/`);
  });

  test("with brackets around an IPv6 address, and its own prefix", async (context) => {
    const { server } = await startServer(context, { host: "::1", prefix: "/" });
    assert.equal(server.url, `http://[::1]:${server.port}/`);
  });
});

describe("a server that can't start says why in one line", () => {
  const invalid: readonly (readonly [title: string, options: Record<string, unknown>, message: RegExp])[] = [
    ["a number out of bounds", { port: 70_000 }, /port must be from 0 to 65535, current value is 70000$/],
    ["a value of another type", { readOnly: "yes" }, /readOnly must be true or false, current value is "yes"$/],
    ["a choice that is not there", { fsync: "sometimes" }, /fsync must be always or no/],
    ["a prefix without a slash", { prefix: "v1" }, /prefix must begin and end with \//],
    ["no directory", { dir: "" }, /dir must be a path/],
    ["a directory that is no text", { dir: 7 }, /dir must be a path/],
    [
      "a log that lacks a method",
      { log: { debug() {}, info() {}, warn() {} } },
      /log must have the methods debug, info, warn and error: error is none, current value is an object$/,
    ],
    ["a log that is none", { log: null }, /log must have the methods debug, info, warn and error, current value is null$/],
    ["a log that is a function", { log: () => {} }, /log must have the methods .*, current value is a function$/],
    ["a clock that lacks a method", { clock: { nowMs: () => 0 } }, /clock must have the methods nowMs and after: after is none/],
    ["an onFault that is no function", { onFault: "exit" }, /onFault must be a function, current value is "exit"$/],
    ["a forceUnlock that is no boolean", { forceUnlock: 1 }, /forceUnlock must be true or false, current value is 1$/],
    ["a name that no option has", { quux: 1 }, /there is no option "quux"$/],
    ["an option as its flag", { "max-append-bytes": 1 }, /there is no option "max-append-bytes"; did you mean maxAppendBytes\?$/],
    ["an option without its unit", { longPollTimeout: 1 }, /there is no option "longPollTimeout"; did you mean longPollTimeoutMs\?$/],
    ["a name that every object has", { toString: 1 }, /there is no option "toString"$/],
    ["a number that is none", { port: Number.NaN }, /port must be from 0 to 65535, current value is NaN$/],
    ["a number that is too big for JSON", { port: 1n }, /port must be from 0 to 65535, current value is 1$/],
    ["a value that has no end", { chunkBytes: Infinity }, /chunkBytes must be from 1B to 64MiB, current value is Infinity$/],
    ["off for a bound", { maxConnections: "off" }, /maxConnections must be from 1 to 100000000, or Infinity, current value is "off"$/],
    ["a list", { corsOrigin: ["https://a.test"] }, /corsOrigin must be .*, current value is an array$/],
  ];
  for (const [title, options, message] of invalid) {
    test(title, async () => {
      const error = await startError(options);
      assert.equal(error.code, "invalid-option");
      assert.match(error.message, message);
    });
  }

  for (const nothing of [undefined, null, "./data"] as unknown as ServerOptions[]) {
    test(`options that are ${nothing}`, async () => {
      const isRefused = (error: unknown): boolean =>
        error instanceof StartError && error.code === "invalid-option" && /must be an object with options/.test(error.message);
      await assert.rejects(createServer(nothing), isRefused);
      await assert.rejects(createHandler(nothing), isRefused);
    });
  }

  test("a directory that is a file", async () => {
    const dir = join(tempDir(), "file");
    writeFileSync(dir, "");
    assert.equal((await startError({ dir })).code, "directory-unusable");
  });

  test("a directory on Windows", async (context) => {
    pretendPlatform(context, "win32");
    const { code, message } = await startError({});
    assert.deepEqual([code, /on Windows use WSL 2/.test(message)], ["directory-unusable", true]);
  });

  test("a directory that another server has", async (context) => {
    const { dir } = await startServer(context);
    assert.equal((await startError({ dir })).code, "directory-unusable");
  });

  test("a port that is in use, and the directory is free again", async (context) => {
    const { port } = await startServer(context);
    const dir = tempDir();
    const error = await startError({ port, dir });
    assert.equal(error.code, "port-unusable");
    assert.equal(error.message, `Cannot listen on 127.0.0.1 port ${port}: the port is in use`);
    await startServer(context, { dir });
  });

  test("an address that this machine does not have", async () => {
    assert.match((await startError({ host: "192.0.2.1" })).message, /192\.0\.2\.1 port 0: the address is not this machine's$/);
  });
});

describe("what was acknowledged", () => {
  test("is there after a stop", async (context) => {
    const before = await startServer(context);
    await before.send("PUT", "a", { headers: TEXT, body: "hello" });
    await before.send("POST", "a", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "!" });
    await before.stop();
    const after = await startServer(context, { dir: before.dir });
    const { text, headers } = await after.send("GET", "a");
    assert.deepEqual([text, headers["stream-closed"]], ["hello!", "true"]);
  });

  test("is there after a stop without time", async (context) => {
    const dir = tempDir();
    const script = `
      import { createServer } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)};
      const server = await createServer({ dir: ${JSON.stringify(dir)}, port: 0 });
      const put = await fetch(server.url + "a", { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
      server.closeNow();
      process.exit(put.status === 201 ? 0 : 1);
    `;
    const { status, stderr } = await startNode(context, ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", script])
      .ended;
    assert.equal(status, 0, stderr);
    const server = await startServer(context, { dir });
    assert.equal((await server.send("GET", "a")).text, "hello");
  });
});

describe("a server that stops", () => {
  test("lets an upload finish, and its answer is the connection's last", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const upload = await server.begin("POST", "a", { headers: { ...TEXT, "Content-Length": "5" } });
    upload.write("he");
    await server.send("HEAD", "a");
    const closed = server.server.close();
    upload.write("llo");
    const { status, headers } = await upload.answer();
    assert.deepEqual([status, headers["connection"]], [204, "close"]);
    await closed;
  });

  test("answers long-polls with 204 and ends SSE between events", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a", { headers: TEXT, body: "hello" });
    const polling = await server.begin("GET", "a?live=long-poll&offset=now");
    await server.clock.armed(TIMEOUT_MS);
    const following = await server.begin("GET", "a?live=sse&offset=-1");
    await following.head();
    await following.until("\nid: ");
    await following.until("\n\n");
    const closed = server.server.close();
    const { status, headers } = await polling.answer();
    assert.deepEqual([status, headers["stream-up-to-date"], headers["connection"]], [204, "true", "close"]);
    assert.equal(await following.rest(), "");
    await closed;
  });

  test("takes no more requests, and its health says so", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const connection = await server.connect();
    const upload = requestBytes("POST", "a", { headers: TEXT, body: "hello" });
    connection.write(upload.subarray(0, -1));
    await server.send("HEAD", "a");
    const closed = server.server.close();
    connection.write(Buffer.concat([upload.subarray(-1), requestBytes("GET", "/health"), requestBytes("GET", "a")]));
    assert.equal((await connection.answer()).status, 204);
    await closed;
    await assert.rejects(RawConnection.open(server.port), /ECONNREFUSED/);
  });

  test("cuts what takes too long", async (context) => {
    const server = await startServer(context, { shutdownTimeoutMs: SHUTDOWN_MS });
    await server.send("PUT", "a", { headers: TEXT });
    const upload = await server.begin("POST", "a", { headers: { ...TEXT, "Content-Length": "5" } });
    upload.write("he");
    await server.send("HEAD", "a");
    const closed = server.server.close();
    await server.clock.armed(SHUTDOWN_MS);
    server.clock.advance(SHUTDOWN_MS);
    assert.equal(await upload.rest(), "");
    await closed;
  });

  test("answers those that were connected before, each for the last time", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "hello" });
    const [appending, reading, following] = [await server.connect(), await server.connect(), await server.connect()];
    // Later connections are accepted later.
    await server.send("HEAD", "a");
    const closed = server.server.close();
    appending.write(requestBytes("POST", "a", { headers: TEXT, body: " there" }));
    const appended = await appending.answer();
    assert.deepEqual([appended.status, appended.headers["connection"]], [204, "close"]);
    reading.write(requestBytes("GET", "a"));
    const read = await reading.answer();
    assert.deepEqual([read.text, read.headers["connection"]], ["hello there", "close"]);
    following.write(requestBytes("GET", "a?live=sse&offset=-1"));
    const followed = await following.answer();
    assert.deepEqual([followed.status, followed.headers["connection"]], [200, "close"]);
    await closed;
  });

  test("waits a second for the first request of a connection", async (context) => {
    const server = await startServer(context);
    const silent = await server.connect();
    await server.send("HEAD", "a");
    const closed = server.server.close();
    await server.clock.armed(REQUEST_LIMITS.firstRequestTimeout);
    server.clock.advance(REQUEST_LIMITS.firstRequestTimeout);
    assert.equal(await silent.rest(), "");
    await closed;
  });

  test("serves on for as long as it is told to, and ends each connection with its next answer", async (context) => {
    const server = await startServer(context, { shutdownDelayMs: DELAY_MS });
    await server.send("PUT", "a", { headers: TEXT });
    const [kept, idle] = [await server.connect(), await server.connect()];
    kept.write(requestBytes("HEAD", "a"));
    assert.equal((await kept.answer({ toHead: true })).headers["connection"], "keep-alive");
    const closed = server.server.close();
    await server.clock.armed(DELAY_MS);
    for (const connection of [kept, await server.connect()]) {
      connection.write(requestBytes("POST", "a", { headers: TEXT, body: "x" }));
      const { status, headers } = await connection.answer();
      assert.deepEqual([status, headers["connection"]], [204, "close"]);
    }
    idle.write(requestBytes("GET", "a"));
    assert.equal((await idle.answer()).text, "xx");
    server.clock.advance(DELAY_MS);
    await closed;
  });

  test("is over once it is to be at once, however long it was to serve on", async (context) => {
    const { server, clock } = await startServer(context, { shutdownDelayMs: DELAY_MS });
    const closed = server.close();
    await clock.armed(DELAY_MS);
    server.closeNow();
    // The clock stands still.
    await closed;
  });

  test("can be asked twice, and then at once", async (context) => {
    const { server } = await startServer(context);
    await Promise.all([server.close(), server.close()]);
    server.closeNow();
  });

  test("at once cuts everything", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const polling = await server.begin("GET", "a?live=long-poll&offset=now");
    await server.clock.armed(TIMEOUT_MS);
    server.server.closeNow();
    assert.equal(await polling.rest(), "");
  });
});

test("a server that is closed measures nothing any more", async (context) => {
  const stopped = context.mock.method(EventLoopMeter.prototype, "stop");
  const server = await createServer({ dir: tempDir(), port: 0, logLevel: "silent" });
  assert.match(await (await fetch(new URL("/metrics", server.url))).text(), /streamdir_build_info/);
  await server.close();
  assert.equal(stopped.mock.callCount(), 1);
});

describe("a handler in somebody else's server", () => {
  interface Mounted {
    readonly handler: StreamHandler;
    connect(): Promise<RawConnection>;
  }

  /** A server that has a handler, and answers `mine` itself when it is asked to. */
  async function mount(context: TestContext, { hasOthers = false, passesExpected = false } = {}): Promise<Mounted> {
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent" });
    const server = createHttpServer((req, res) => {
      if (hasOthers) handler(req, res, () => void res.end("mine"));
      else handler(req, res);
    });
    if (passesExpected) server.on("checkContinue", (req, res) => server.emit("request", req, res));
    await once(server.listen(0, "127.0.0.1"), "listening");
    const connections: RawConnection[] = [];
    context.after(async () => {
      await Promise.all(connections.map((connection) => connection.close()));
      server.close();
      await handler.close();
    });
    return {
      handler,
      async connect() {
        const connection = await RawConnection.open((server.address() as AddressInfo).port);
        connections.push(connection);
        return connection;
      },
    };
  }

  test("has the metrics for whoever it serves in", async (context) => {
    const { handler, connect } = await mount(context);
    const connection = await connect();
    connection.write(requestBytes("PUT", "a", { headers: TEXT, body: "hello" }));
    assert.equal((await connection.answer()).status, 201);
    assert.match(handler.metrics(), /^streamdir_appended_bytes_total 5$/m);
    assert.match(handler.metrics(), /\n$/);
  });

  test("serves streams", async (context) => {
    const connection = await (await mount(context)).connect();
    connection.write(Buffer.concat([requestBytes("PUT", "a", { headers: TEXT, body: "hello" }), requestBytes("GET", "a")]));
    assert.equal((await connection.answer()).headers["location"], "http://streams.test/v1/stream/a");
    assert.equal((await connection.answer()).text, "hello");
  });

  for (const passesExpected of [false, true])
    test(`tells a client once to send its body, ${passesExpected ? "by itself" : "or Node does"}`, async (context) => {
      const connection = await (await mount(context, { passesExpected })).connect();
      const upload = requestBytes("PUT", "a", { headers: { ...TEXT, Expect: "100-Continue" }, body: "hello" });
      connection.write(upload.subarray(0, -"hello".length));
      assert.equal((await connection.answer()).status, 100);
      connection.write("hello");
      assert.equal((await connection.answer()).status, 201);
      if (!passesExpected) return;
      const refused = requestBytes("POST", "none", { headers: { ...TEXT, Expect: "100-continue" }, body: "hello" });
      connection.write(refused.subarray(0, -"hello".length));
      assert.equal((await connection.answer()).status, 404);
    });

  test("leaves other paths to the server", async (context) => {
    const connection = await (await mount(context, { hasOthers: true })).connect();
    for (const [target, text] of [
      ["/", "mine"],
      ["/v1/other", "mine"],
      ["/health", '{"status":"ok"}'],
    ] as const) {
      connection.write(requestBytes("GET", target));
      assert.equal((await connection.answer()).text, text);
    }
  });

  test("answers other paths with 404 when nobody else does", async (context) => {
    const connection = await (await mount(context)).connect();
    connection.write(requestBytes("GET", "/other"));
    assert.equal((await connection.answer()).status, 404);
  });

  test("that is closed refuses requests, and its health says so", async (context) => {
    const { handler, connect } = await mount(context);
    await handler.close();
    for (const [target, status, text] of [
      ["a", 503, /"code":"shutting-down"/],
      ["/health", 503, /^\{"status":"unavailable","reason":"The server is shutting down\."\}$/],
      ["/", 503, /"code":"shutting-down"/],
      ["/other", 404, /unknown-path/],
    ] as const) {
      const connection = await connect();
      connection.write(requestBytes("GET", target));
      const answer = await connection.answer();
      assert.equal(answer.status, status);
      assert.match(answer.text, text);
    }
  });

  test("that is closed lets uploads finish", async (context) => {
    const { handler, connect } = await mount(context);
    const connection = await connect();
    connection.write(requestBytes("PUT", "a", { headers: TEXT }));
    assert.equal((await connection.answer()).status, 201);
    const upload = requestBytes("POST", "a", { headers: TEXT, body: "hello" });
    connection.write(upload.subarray(0, -1));
    const other = await connect();
    other.write(requestBytes("HEAD", "a"));
    await other.answer({ toHead: true });
    const closed = handler.close();
    connection.write(upload.subarray(-1));
    assert.equal((await connection.answer()).status, 204);
    await closed;
  });

  test("can't start without a directory", async () => {
    await assert.rejects(createHandler({ dir: "" }), StartError);
  });
});
