import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { createGzip } from "node:zlib";
import { OPERATIONS } from "../../src/auth/rights/operation.js";
import { createHandler, type ServerOptions } from "../../src/server.js";
import { AuthFile } from "../helpers/auth-file.js";
import { mount, serve, type Host, type Middleware } from "../helpers/mounted-handler.js";
import type { Answer } from "../helpers/raw-connection.js";
import { tempDir } from "../helpers/temp-dir.js";
import { requestBytes } from "../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const STREAMS = "/api/v1/stream/";

/** A host that mounts streams at /api. */
async function start(context: TestContext, options: Partial<ServerOptions> = {}, before?: Middleware): Promise<Host> {
  const handler = await createHandler({ dir: tempDir(), logLevel: "silent", ...options });
  const app = mount("/api", handler, before);
  return serve(
    context,
    createServer((req, res) => app(req, res, () => void res.writeHead(418).end())),
    handler,
  );
}

/** As `on-headers` before 1.1.0, which much middleware for Express uses: each text of a list is a name and a value. */
const taking: Middleware = (_req, res, next) => {
  const writeHead = res.writeHead.bind(res);
  res.writeHead = (status: number, headers?: unknown): ServerResponse => {
    const pairs = Array.isArray(headers) ? (headers as [string, string][]) : []; // as it believes
    for (const [name, value] of pairs) res.setHeader(name, value);
    return writeHead(status);
  };
  next();
};

/** As `compression`: what is written waits until there is enough of it, unless the answer forbids that. */
const compressing: Middleware = (_req, res, next) => {
  const writeHead = res.writeHead.bind(res);
  res.writeHead = (status: number): ServerResponse => {
    if (!/no-transform/.test(String(res.getHeader("Cache-Control")))) {
      const [gzip, write] = [createGzip(), res.write.bind(res)];
      gzip.on("data", write);
      res.write = (chunk: unknown) => gzip.write(chunk);
      res.setHeader("Content-Encoding", "gzip");
    }
    return writeHead(status);
  };
  next();
};

function assertOwn({ headers }: Pick<Answer, "headers">): void {
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.deepEqual(
    Object.keys(headers).filter((name) => name.length === 1),
    [],
  );
}

describe("behind middleware that takes a list of headers for one of pairs", () => {
  test("each answer has the headers that it should have", async (context) => {
    const { send } = await start(context, {}, taking);
    const producer = (seq: number) => ({ ...TEXT, "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": String(seq) });
    const cases = [
      ["PUT", "a", { headers: TEXT }, 201, { location: `http://streams.test${STREAMS}a`, "content-length": "0" }],
      ["POST", "a", { headers: TEXT, body: "hello" }, 204, { "stream-next-offset": /^0{16}_\d{16}$/ }],
      ["POST", "a", { headers: producer(0), body: "x" }, 200, { "producer-seq": "0", "content-length": "0" }],
      ["POST", "a", { headers: producer(0), body: "x" }, 204, { "producer-seq": "0" }],
      ["GET", "a?offset=-1", {}, 200, { "content-type": "text/plain", "content-length": "6", "stream-up-to-date": "true" }],
      ["HEAD", "a", {}, 200, { "content-type": "text/plain", "cache-control": "no-store" }],
      ["OPTIONS", "a", {}, 204, { "access-control-allow-methods": /PUT/ }],
      ["GET", "missing", {}, 404, { "content-type": "application/problem+json" }],
      ["DELETE", "a", {}, 204, {}],
    ] as const;
    for (const [method, name, parts, status, expected] of cases) {
      const answer = await send(method, STREAMS + name, parts);
      assert.equal(answer.status, status, `${method} ${name}: ${answer.text}`);
      assertOwn(answer);
      for (const [header, value] of Object.entries<string | RegExp>(expected))
        if (value instanceof RegExp) assert.match(answer.headers[header] ?? "", value);
        else assert.equal(answer.headers[header], value);
    }
  });

  test("an answer before the end of the body has them", async (context) => {
    const { connect } = await start(context, { maxAppendBytes: 10 }, taking);
    const connection = await connect();
    connection.write(`POST ${STREAMS}a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n`);
    const answer = await connection.answer();
    assert.equal(answer.status, 413, answer.text);
    assert.equal(answer.headers["content-type"], "application/problem+json");
    assertOwn(answer);
  });

  for (const target of ["a?live=sse&offset=-1", "__ds/streams?live=sse"])
    test(`${target} has them, and its events as they are`, async (context) => {
      const { send, connect } = await start(context, {}, taking);
      await send("PUT", `${STREAMS}a`, { headers: TEXT });
      const connection = await connect();
      connection.write(`GET ${STREAMS}${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const head = await connection.head();
      assert.deepEqual([head.status, head.headers["content-type"]], [200, "text/event-stream"]);
      assert.deepEqual([head.headers["transfer-encoding"], head.headers["connection"]], ["chunked", "close"]);
      assertOwn(head);
      assert.match(await connection.until("\n\n"), /^retry: \d+\nevent: /);
    });
});

describe("behind middleware that compresses", () => {
  for (const target of ["a?live=sse&offset=-1", "__ds/streams?live=sse"])
    test(`the first event of ${target} comes at once`, async (context) => {
      const { send, connect } = await start(context, {}, (req, res, next) => (req.method === "GET" ? compressing(req, res, next) : next()));
      await send("PUT", `${STREAMS}a`, { headers: TEXT });
      const connection = await connect();
      connection.write(`GET ${STREAMS}${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.equal((await connection.head()).headers["content-encoding"], undefined);
      assert.match(await connection.until("\n\n"), /^retry: \d+\nevent: /);
    });
});

describe("a handler that is mounted below a path", () => {
  test("names its streams as its clients reach them", async (context) => {
    const file = new AuthFile();
    const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
    file.write();
    const { send } = await start(context, { auth: file.path, ui: true });
    const made = await send("PUT", `${STREAMS}a`, { headers: { ...owner, ...TEXT }, body: "hello" });
    assert.equal(made.headers["location"], `http://streams.test${STREAMS}a`);
    const ticket = await send("POST", `${STREAMS}__ds/tickets`, { headers: owner, body: '{"stream":"a"}' });
    const { url } = JSON.parse(ticket.text) as { url: string }; // as docs/api.md has it
    assert.match(url, /^http:\/\/streams\.test\/api\/v1\/stream\/a\?ticket=/);
    assert.equal((await send("GET", url.slice("http://streams.test".length))).text, "hello");
    const front = JSON.parse((await send("GET", STREAMS, { headers: { Accept: "application/json" } })).text);
    assert.deepEqual(
      [front.streams, front.health, front.page],
      [`http://streams.test${STREAMS}`, "http://streams.test/api/health", `http://streams.test${STREAMS}__ds/ui/`],
    );
    assert.equal(JSON.parse((await send("GET", `${STREAMS}__ds/ui/facts`, { headers: owner })).text).prefix, STREAMS);
  });

  test("forks by the path that its clients know, and by the one that it has itself", async (context) => {
    const { send } = await start(context);
    await send("PUT", `${STREAMS}a`, { headers: TEXT, body: "hello" });
    for (const [name, from] of [
      ["b", `${STREAMS}a`],
      ["c", "/v1/stream/a"],
    ] as const) {
      const made = await send("PUT", STREAMS + name, { headers: { "Stream-Forked-From": from } });
      assert.equal(made.status, 201, made.text);
      assert.equal((await send("GET", `${STREAMS}${name}?offset=-1`)).text, "hello");
    }
    const other = await send("PUT", `${STREAMS}d`, { headers: { "Stream-Forked-From": "/other/v1/stream/a" } });
    assert.equal(other.status, 400);
  });

  test("forks only what the client may read, whichever path names it", async (context) => {
    const file = new AuthFile();
    const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
    const other = { Authorization: `Bearer ${file.token("other", [{ streams: ["b"], allow: OPERATIONS }])}` };
    file.write();
    const { send } = await start(context, { auth: file.path });
    await send("PUT", `${STREAMS}a`, { headers: { ...owner, ...TEXT }, body: "hello" });
    for (const from of [`${STREAMS}a`, "/v1/stream/a"]) {
      const refused = await send("PUT", `${STREAMS}b`, { headers: { ...other, "Stream-Forked-From": from } });
      assert.equal(refused.status, 403, from);
    }
  });
});

test("a handler without a third argument leaves the paths beside its streams to nobody", async (context) => {
  const handler = await createHandler({ dir: tempDir(), logLevel: "silent" });
  const { send } = await serve(
    context,
    createServer((req, res) => handler(req, res)),
    handler,
  );
  for (const path of ["/metrics", "/livez", "/readyz", "/other"]) {
    const answer = await send("GET", path);
    assert.deepEqual([answer.status, answer.headers["content-type"]], [404, "application/problem+json"], path);
  }
  for (const path of ["/", "/health"]) assert.equal((await send("GET", path)).status, 200, path);
});

describe("a body that a handler can't take as bytes", () => {
  const json = { "Content-Type": "application/json" };

  test("is refused where setEncoding was called before, whole or in parts, and the program goes on", async (context) => {
    const reading: Middleware = (req, _res, next) => {
      if (req.method === "POST") req.setEncoding("utf8");
      next();
    };
    const host = await start(context, {}, reading);
    for (const [name, headers, body] of [
      ["text", TEXT, "some text"],
      ["json", json, '["some", "text"]'],
    ] as const) {
      await host.send("PUT", `${STREAMS}${name}`, { headers });
      assert.equal((await host.send("POST", `${STREAMS}${name}`, { headers, body })).status, 500);
      const connection = await host.connect();
      connection.write(`POST ${STREAMS}${name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${headers["Content-Type"]}\r\n`);
      connection.write(`Transfer-Encoding: chunked\r\n\r\n4\r\n${body.slice(0, 4)}\r\n`);
      assert.equal((await connection.answer()).status, 500);
      const { headers: after } = await host.send("HEAD", `${STREAMS}${name}`);
      assert.match(String(after["stream-next-offset"]), /_0+$/, "nothing of it is stored");
    }
  });

  test("is refused from node:http2, where nothing says whether there is one", async (context) => {
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent" });
    const server = createHttp2Server((req, res) => {
      handler(req as unknown as IncomingMessage, res as unknown as ServerResponse); // as a program in JavaScript would
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo; // it listens on a port
    const client = connect(`http://127.0.0.1:${port}`);
    context.after(async () => {
      client.destroy();
      server.close();
      await handler.close();
    });
    const request = client.request({ ":method": "PUT", ":path": "/v1/stream/a", "content-type": "text/plain" });
    request.end("hi");
    const [headers] = (await once(request, "response")) as [Record<string, unknown>]; // the event's argument
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
    assert.equal(headers[":status"], 500);
    assert.match(body, /passes HTTP\/2 to a handler of streamdir, which takes HTTP\/1\.1 alone/);
  });
});

test("of too many requests behind one that waits, the server around gets none either", async (context) => {
  let seen = 0;
  const host = await start(context, {}, (_req, _res, next) => {
    seen += 1;
    next();
  });
  await host.send("PUT", `${STREAMS}a`, { headers: TEXT });
  const connection = await host.connect();
  const rest = requestBytes("GET", `${STREAMS}a`).toString().repeat(600);
  connection.write(`${requestBytes("GET", `${STREAMS}a?live=sse&offset=now`).toString()}${rest}`);
  await connection.until("upToDate");
  await host.send("PUT", `${STREAMS}a`, { headers: TEXT, body: "x" });
  // The two others, the live read, 256 that wait and the one that is refused.
  assert.equal(seen, 260);
});

test("a handler whose auth file has no name is refused: its streams would be everybody's", async () => {
  for (const auth of ["", undefined])
    await assert.rejects(
      createHandler({ dir: tempDir(), auth } as ServerOptions), // as a program passes a variable that is not set
      /^StartError: Cannot start: auth names no file; leave it out where your server asks$/,
    );
});

test("a request that was held while somebody was asked who that is, is taken whole", async (context) => {
  const asking: Middleware = (req, _res, next) => {
    req.pause();
    setImmediate(() => setImmediate(next));
  };
  const { send } = await start(context, {}, asking);
  assert.equal((await send("PUT", `${STREAMS}a`, { headers: TEXT, body: "hello" })).status, 201);
  assert.equal((await send("POST", `${STREAMS}a`, { headers: TEXT, body: " again" })).status, 204);
  assert.equal((await send("GET", `${STREAMS}a`)).text, "hello again");
});
