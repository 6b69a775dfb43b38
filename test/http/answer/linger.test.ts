import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer } from "../../helpers/test-server.js";

const BYTES = { "Content-Type": "application/octet-stream" };
const MiB = 1024 * 1024;

describe("a client that is refused while it sends", () => {
  test("gets its whole answer, and may send to the end", async (context) => {
    const server = await startServer(context, { maxAppendBytes: 10 });
    const body = Buffer.alloc(32 * MiB);
    const connection = await server.begin("PUT", "a", { headers: BYTES, body });
    assert.equal((await connection.answer()).status, 413);
    assert.equal(await connection.rest(), "");
    assert.equal(server.faults.length, 0);
  });

  test("although it asked whether to continue gets its answer", async (context) => {
    const server = await startServer(context, { maxAppendBytes: 10 });
    const body = Buffer.alloc(32 * MiB);
    const connection = await server.begin("PUT", "a", { headers: { ...BYTES, Expect: "100-continue" }, body });
    assert.equal((await connection.answer()).status, 413);
    assert.equal(await connection.rest(), "");
  });

  for (const [title, method, target, headers, status] of [
    ["for its name", "PUT", "a//b", {}, 400],
    ["for a header", "PUT", "a", { "Stream-TTL": "x" }, 400],
    ["for its method", "PATCH", "a", {}, 405],
    ["for its path", "POST", "/elsewhere", {}, 404],
  ] as const) {
    test(`${title} gets its answer too`, async (context) => {
      const server = await startServer(context);
      const connection = await server.begin(method, target, { headers: { ...BYTES, ...headers }, body: Buffer.alloc(4 * MiB) });
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers["connection"]], [status, "close"]);
      assert.equal(await connection.rest(), "");
    });
  }

  for (const [title, expect] of [
    ["", {}],
    [" and asks whether to continue", { Expect: "100-continue" }],
  ] as const) {
    test(`the body of a HEAD${title} gets its answer before all of that has come`, async (context) => {
      const server = await startServer(context);
      const connection = await server.begin("HEAD", "a", { headers: { ...BYTES, "Content-Length": "5", ...expect } });
      const answer = await connection.answer({ toHead: true });
      assert.deepEqual([answer.status, answer.headers["connection"]], [404, "close"]);
      connection.write("hello");
      assert.equal(await connection.rest(), "");
      assert.equal(server.faults.length, 0);
    });
  }

  test("is cut when it takes too long", async (context) => {
    const server = await startServer(context, { maxAppendBytes: 10 });
    const connection = await server.begin("PUT", "a", { headers: { ...BYTES, "Content-Length": "100" } });
    assert.equal((await connection.answer()).status, 413);
    await server.clock.armed(30_000);
    server.clock.advance(30_000);
    assert.equal(await connection.rest(), "");
  });

  test("is cut when it sends without end", async (context) => {
    const server = await startServer(context, { maxAppendBytes: 10 });
    const connection = await server.begin("PUT", "a", { headers: { ...BYTES, "Content-Length": String(1024 * MiB) } });
    assert.equal((await connection.answer()).status, 413);
    const { socket } = connection;
    socket.setMaxListeners(0);
    const piece = Buffer.alloc(MiB);
    let sentMiB = 0;
    for (; !socket.destroyed && sentMiB < 1024; sentMiB += 1) {
      if (socket.write(piece)) continue;
      await new Promise<void>((resolve) => {
        for (const event of ["drain", "close"]) socket.once(event, () => resolve());
      });
    }
    assert.ok(sentMiB >= 256 && sentMiB < 512, `${sentMiB} MiB went out`);
  });

  test("that goes away leaves nothing behind", async (context) => {
    const server = await startServer(context, { maxAppendBytes: 10 });
    const idleTimers = server.clock.pendingCount;
    const connection = await server.begin("PUT", "a", { headers: { ...BYTES, "Content-Length": "100" } });
    assert.equal((await connection.answer()).status, 413);
    await connection.close();
    while (server.clock.pendingCount > idleTimers) await server.send("HEAD", "a");
  });
});
