import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import test, { describe, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { startNode } from "../../../helpers/process.js";
import { serverAt } from "../../../helpers/server-at.js";
import { HttpClient } from "../../../../src/cli/client/remote/http-client.js";
import { parseServer } from "../../../../src/cli/client/remote/server-address.js";

async function clientTo(t: TestContext, listener: http.RequestListener, ending = new AbortController()): Promise<HttpClient> {
  const server = http.createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const place = server.address();
  assert.ok(typeof place === "object" && place !== null);
  const address = parseServer(`http://127.0.0.1:${place.port}`, null);
  assert.ok(!("fault" in address));
  const client = new HttpClient({ address, token: "t", certificate: null, userAgent: "test/1", connections: 1, signal: ending.signal });
  t.after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return client;
}

describe("a request", () => {
  test("has its headers, its body and the token, and its answer is whole", async (t) => {
    const client = await clientTo(t, (req, res) => {
      const parts: Buffer[] = [];
      req.on("data", (part: Buffer) => parts.push(part));
      req.on("end", () => {
        res.setHeader("X-Seen", `${req.method} ${req.url} ${req.headers.authorization} ${req.headers["x-a"]} ${req.headers["user-agent"]}`);
        res.end(Buffer.concat(parts));
      });
    });
    const heard = await client.ask({ method: "POST", target: "/a?b", headers: { "X-A": "1" }, body: Buffer.from("body") });
    assert.ok(heard.kind === "answer");
    assert.deepEqual([heard.status, heard.header("x-seen"), heard.body.toString()], [200, "POST /a?b Bearer t 1 test/1", "body"]);
    assert.equal(heard.header("x-none"), null);
    assert.ok(heard.tookMs >= 0);
  });

  test("whose answer is cut off has none", async (t) => {
    const client = await clientTo(t, (_, res) => {
      res.setHeader("Content-Length", "10");
      res.write("half", () => res.destroy());
    });
    assert.equal((await client.ask({ method: "GET", target: "/" })).kind, "silence");
  });

  test("that is not answered in its time has no answer, also on a connection that was used before", async (t) => {
    const client = await clientTo(t, (req, res) => {
      if (req.url === "/ready") res.end("ready");
    });
    const silence = { kind: "silence", why: "nothing came for 0.05 s", hasStalled: true };
    assert.deepEqual(await client.ask({ method: "GET", target: "/" }, 50), silence);
    assert.equal((await client.ask({ method: "GET", target: "/ready" }, 60_000)).kind, "answer");
    assert.deepEqual(await client.ask({ method: "GET", target: "/" }, 50), silence);
  });

  test("may take longer for its answer once that has begun", async (t) => {
    let answerMs = 100;
    const client = await clientTo(t, (_, res) => {
      res.write("a");
      setTimeout(() => res.end("b"), 1.5 * answerMs);
    });
    let heard = await client.ask({ method: "GET", target: "/" }, answerMs);
    // On a busy machine it may not even have begun by then: it gets more time, and takes longer than that, too.
    for (; heard.kind === "silence" && answerMs < 10_000; heard = await client.ask({ method: "GET", target: "/" }, answerMs))
      answerMs *= 10;
    assert.equal(heard.kind === "answer" && heard.body.toString(), "ab");
  });

  test("ends with the verb", async (t) => {
    const ending = new AbortController();
    const client = await clientTo(t, () => ending.abort(130), ending);
    assert.equal((await client.ask({ method: "GET", target: "/" })).kind, "silence");
  });
});

test("an answer in chunks of a byte takes no memory for each chunk", async (t) => {
  const chunks = 500_000;
  const url = await serverAt(t, (_, res) => {
    const socket = res.socket ?? assert.fail("it is connected");
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nStream-Next-Offset: 1_1\r\nStream-Up-To-Date: true\r\n");
    socket.end(`Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(chunks)}0\r\n\r\n`);
  });
  const main = fileURLToPath(new URL("../../../../src/cli/main.ts", import.meta.url));
  const command = ["--max-old-space-size=64", "--import", import.meta.resolve("tsx"), main, "cat", "s"];
  const { status, stdout } = await startNode(t, command, { env: { STREAMDIR_URL: url } }).ended;
  assert.deepEqual([status, stdout.length], [0, chunks]);
});
