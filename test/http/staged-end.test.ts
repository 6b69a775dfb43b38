import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { StagedEnds } from "../../src/http/staged-end.js";
import { ManualClock } from "../helpers/manual-clock.js";
import type { RawConnection } from "../helpers/raw-connection.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { socketPair } from "../helpers/socket-pair.js";
import { requestBytes, startServer } from "../helpers/test-server.js";

const MiB = 1024 * 1024;

describe("a connection that ends in stages", () => {
  test("is over when its client has ended its side, too", async (context) => {
    const { client, socket } = await socketPair(context);
    const clock = new ManualClock();
    const ends = new StagedEnds(clock);
    assert.deepEqual([ends.isDeaf(socket), ends.isEnding(socket)], [false, false]);
    ends.deafen(socket);
    ends.deafen(socket);
    assert.deepEqual([ends.isDeaf(socket), ends.isEnding(socket)], [true, false]);
    ends.end(socket, "the last");
    ends.end(socket, "nothing more");
    assert.equal(ends.isEnding(socket), true);
    assert.equal(await client.rest(), "the last");
    client.write("still sending");
    const closed = once(socket.resume(), "close");
    client.socket.end();
    await closed;
    assert.equal(clock.pendingCount, 0);
  });

  test("is cut when its client takes too long", async (context) => {
    const { socket } = await socketPair(context);
    const clock = new ManualClock();
    new StagedEnds(clock).end(socket);
    clock.advance(4_999);
    assert.equal(socket.destroyed, false);
    clock.advance(1);
    assert.equal(socket.destroyed, true);
  });

  test("is cut when its client sends too much, also before this side has ended", async (context) => {
    const { client, socket } = await socketPair(context);
    const ends = new StagedEnds(new ManualClock());
    ends.deafen(socket);
    socket.on("data", () => ends.isDeaf(socket));
    client.write(Buffer.alloc(2 * MiB));
    await once(socket, "close");
  });

  test("may have ended on this side before", async (context) => {
    const { client, socket } = await socketPair(context);
    socket.end("before");
    const ends = new StagedEnds(new ManualClock());
    ends.end(socket);
    assert.equal(await client.rest(), "before");
    assert.equal(ends.isEnding(socket), true);
  });
});

for (const path of ALL_PATHS) {
  describe(`a client that sends on behind its last request, on the ${path} path,`, () => {
    /** Sends `bytes` a little at a time until they are out or the connection is gone. */
    async function sendSlowly({ socket }: RawConnection, bytes: Buffer): Promise<void> {
      for (let at = 0; at < bytes.length && !socket.destroyed; at += 1000) {
        socket.write(bytes.subarray(at, at + 1000));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }

    for (const [title, bytes, status] of [
      ["that was an Upgrade", requestBytes("HEAD", "a", { headers: { Connection: "Upgrade", Upgrade: "websocket" } }), 200],
      ["that asked for the end", requestBytes("HEAD", "a", { headers: { Connection: "close" } }), 200],
      ["that was refused early", requestBytes("PUT", "a//b", { body: "x" }), 400],
      ["that waited to be told to continue", requestBytes("PUT", "a//b", { headers: { Expect: "100-continue" }, body: "x" }), 400],
    ] as const) {
      test(`${title}, has its answer and nothing else`, async (context) => {
        takePath(context, path);
        const server = await startServer(context);
        await server.send("PUT", "a");
        const connection = await server.connect();
        const more = Buffer.concat([requestBytes("DELETE", "a"), requestBytes("PUT", "b", { body: Buffer.alloc(10_000) })]);
        await sendSlowly(connection, Buffer.concat([bytes, ...Array.from({ length: 20 }, () => more)]));
        assert.equal((await connection.answer({ toHead: status === 200 })).status, status);
        assert.equal(await connection.rest(), "");
        assert.equal((await server.send("HEAD", "a")).status, 200);
        assert.equal((await server.send("HEAD", "b")).status, 404);
      });
    }

    test("and does not stop, is cut", async (context) => {
      takePath(context, path);
      const server = await startServer(context);
      const connection = await server.connect();
      connection.write(
        Buffer.concat([
          requestBytes("PUT", "a", { headers: { Connection: "close" } }),
          requestBytes("PUT", "b", { body: Buffer.alloc(MiB) }),
        ]),
      );
      while (!connection.socket.destroyed) await sendSlowly(connection, Buffer.alloc(MiB));
      assert.equal((await server.send("HEAD", "b")).status, 404);
    });
  });
}
