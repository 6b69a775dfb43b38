import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { LiveReaders, type LiveMode } from "../../../src/http/bounds/live-readers.js";
import type { RawConnection } from "../../helpers/raw-connection.js";
import { REQUEST_PATHS, takePath, type RequestPath } from "../../helpers/request-paths.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const BYTES = { "Content-Type": "application/octet-stream" };
const POLL_MS = 12_345;
const LIVE = { sse: "a?live=sse&offset=-1", "long-poll": "a?live=long-poll&offset=now" } as const;
type Kind = keyof typeof LIVE;

/** Counts how often readers have come and gone, whatever the server's own count says. */
function counted(context: TestContext): { entered: number; left: number } {
  const counts = { entered: 0, left: 0 };
  const enter = LiveReaders.prototype.enter;
  context.mock.method(LiveReaders.prototype, "enter", function (this: LiveReaders, client: string, mode: LiveMode) {
    const left = enter.call(this, client, mode);
    if (typeof left !== "function") return left;
    counts.entered += 1;
    return () => {
      counts.left += 1;
      left();
    };
  });
  return counts;
}

async function served(context: TestContext, path: RequestPath, limits: object): Promise<TestServer> {
  takePath(context, path);
  const server = await startServer(context, { longPollTimeoutMs: POLL_MS, insecure: true, ...limits });
  await server.send("PUT", "a", { headers: BYTES });
  return server;
}

/** A reader that waits now. */
async function reading(server: TestServer, kind: Kind, from = "127.0.0.1"): Promise<RawConnection> {
  const before = server.clock.pendingCount;
  const connection = await server.begin("GET", LIVE[kind], { from });
  if (kind === "sse") await connection.until("upToDate");
  else while (server.clock.pendingCount === before) await server.send("HEAD", "a", { from: "127.0.0.8" });
  return connection;
}

/** Resolves when a reader finds room again. */
async function roomAgain(server: TestServer, kind: Kind): Promise<void> {
  for (;;) {
    const connection = await server.begin("GET", LIVE.sse);
    const { status } = await connection.head();
    if (status === 200) return connection.close();
    assert.equal(status, 503, kind);
    await connection.close();
  }
}

/** Every way in which a reader ends. */
const ENDS: Readonly<Record<string, (server: TestServer, reader: RawConnection, kind: Kind) => Promise<unknown>>> = {
  "its connection is gone": (_server, reader) => reader.close(),
  "its client ends its side": async (_server, reader) => {
    reader.socket.end();
    await reader.rest();
  },
  "the stream is closed": (server) => server.send("POST", "a", { headers: { "Stream-Closed": "true" } }),
  "the stream is deleted": (server) => server.send("DELETE", "a"),
  "its time is over": async (server, reader, kind) => {
    server.clock.advance(kind === "sse" ? 70_000 : POLL_MS);
    await (kind === "sse" ? reader.rest() : reader.answer());
  },
  "it has news": async (server, reader, kind) => {
    await server.send("POST", "a", { headers: BYTES, body: "x" });
    await (kind === "sse" ? reader.close() : reader.answer());
  },
};

for (const path of REQUEST_PATHS) {
  for (const kind of ["sse", "long-poll"] as const) {
    describe(`a live reader by ${kind}, ${path} path`, () => {
      for (const [how, end] of Object.entries(ENDS)) {
        test(`leaves its place once when ${how}`, async (context) => {
          const counts = counted(context);
          const server = await served(context, path, { maxLiveReaders: 1 });
          const reader = await reading(server, kind);
          const refused = await server.send("GET", LIVE[kind === "sse" ? "long-poll" : "sse"], { from: "127.0.0.2" });
          assert.deepEqual([refused.status, refused.headers["retry-after"]], [503, "1"]);
          const { code, detail } = JSON.parse(refused.text) as { code: string; detail: string };
          assert.deepEqual([code, detail.includes("--max-live-readers.")], ["overloaded", true]);
          await end(server, reader, kind);
          // A stream that is closed or gone has no live readers.
          await server.send("DELETE", "a");
          await server.send("PUT", "a", { headers: BYTES });
          await roomAgain(server, kind);
          while (counts.left < counts.entered) await server.send("HEAD", "a");
          assert.deepEqual(counts, { entered: 2, left: 2 });
        });
      }

      test("leaves its place once when the server stops", async (context) => {
        const counts = counted(context);
        const server = await served(context, path, { maxLiveReaders: 2 });
        await reading(server, kind);
        await server.stop();
        assert.deepEqual(counts, { entered: 1, left: 1 });
      });

      test("is refused where its client has too many, and others are not", async (context) => {
        const server = await served(context, path, { maxLiveReadersPerClient: 1 });
        await reading(server, kind);
        const refused = await server.send("GET", LIVE[kind]);
        assert.equal(refused.status, 503);
        assert.match(refused.text, /--max-live-readers-per-client/);
        await reading(server, kind, "127.0.0.2");
      });
    });
  }
}

test("a long-poll that need not wait takes no place", async (context) => {
  const server = await served(context, "direct", { maxLiveReaders: 1 });
  await server.send("POST", "a", { headers: BYTES, body: "x" });
  await reading(server, "sse");
  assert.equal((await server.send("GET", "a?live=long-poll&offset=-1")).text, "x");
});
