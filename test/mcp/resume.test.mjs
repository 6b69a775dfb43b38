/** The MCP SDK's client and server, unmodified, with the recipe's event store between them. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolResultSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { StreamdirEventStore } from "../../docs/recipes/mcp-event-store.mjs";
import { createServer } from "../../src/index.ts";

/** An MCP server with one tool, which counts as far as it is let. */
async function startMcp(context, streams, mayCount) {
  const mcp = new McpServer({ name: "counter", version: "1.0.0" }, { capabilities: { logging: {} } });
  mcp.registerTool("count", { description: "Counts to three" }, async ({ sendNotification }) => {
    for (let number = 1; number <= 3; number++) {
      await mayCount(number);
      await sendNotification({ method: "notifications/message", params: { level: "info", data: number } });
    }
    return { content: [{ type: "text", text: "counted" }] };
  });
  const transport = transportOfHead(streams);
  await mcp.connect(transport);
  const sockets = new Set();
  const url = await listen(context, (req, res) => transport.handleRequest(req, res), sockets);
  context.after(() => mcp.close());
  return { url, cut: () => sockets.forEach((socket) => socket.destroy()) };
}

/** What the head of the recipe shows for a session, but for the place of the streams. */
function transportOfHead(streams) {
  const [, lines] = /^((?:\/\/ {3}\S.*\n)+)/m.exec(
    readFileSync(new URL("../../docs/recipes/mcp-event-store.mjs", import.meta.url), "utf8"),
  );
  const code = lines.replaceAll(/^\/\//gm, "").replace("http://127.0.0.1:4437/v1/stream/", streams);
  const make = new Function("randomUUID", "StreamdirEventStore", "StreamableHTTPServerTransport", code.replace("  new ", "  return new "));
  return make(randomUUID, StreamdirEventStore, StreamableHTTPServerTransport);
}

async function listen(context, answer, sockets = new Set()) {
  const server = http.createServer((req, res) => void answer(req, res));
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`http://127.0.0.1:${server.address().port}/`);
}

/** A server of streams; `restart` starts it anew at the same place. */
async function startStreams(context) {
  const dir = mkdtempSync(join(tmpdir(), "streamdir-mcp-"));
  const start = (port) => createServer({ dir, port, log: { debug() {}, info() {}, warn() {}, error() {} } });
  let server = await start(0);
  context.after(async () => {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const restart = async () => {
    await server.close();
    server = await start(Number(new URL(server.url).port));
  };
  return { url: server.url, restart };
}

/** Asks an MCP server for what came after an event, and reads until `part`; gives the status and all that was read. */
async function missed(url, sessionId, lastEventId, part) {
  const headers = { Accept: "text/event-stream", "Mcp-Session-Id": sessionId, "Last-Event-ID": lastEventId };
  const answer = await fetch(url, { headers });
  let text = "";
  for await (const bytes of answer.body) {
    text += Buffer.from(bytes).toString();
    if (text.includes(part)) break;
  }
  return { status: answer.status, text };
}

function connect(url, onNumber) {
  const client = new Client({ name: "test", version: "1.0.0" });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => onNumber(params.data));
  return {
    client,
    transport: new StreamableHTTPClientTransport(url, {
      reconnectionOptions: { initialReconnectionDelay: 10, maxReconnectionDelay: 50, reconnectionDelayGrowFactor: 1, maxRetries: 100 },
    }),
  };
}

test(
  "a call whose connection is cut in its middle goes on where it was: nothing is lost and nothing comes twice",
  { timeout: 30_000 },
  async (context) => {
    const streams = await startStreams(context);
    const seen = [];
    let goOn = () => {};
    const firstIsSeen = new Promise((resolve) => (goOn = resolve));
    const { url, cut } = await startMcp(context, streams.url, async (number) => {
      if (number !== 2) return;
      await firstIsSeen;
      // From here on the client is told nothing but what it comes back for, from a streamdir that was started anew.
      await streams.restart();
      cut();
    });
    const { client, transport } = connect(url, (number) => {
      seen.push(number);
      goOn();
    });
    await client.connect(transport);
    const result = await client.request({ method: "tools/call", params: { name: "count", arguments: {} } }, CallToolResultSchema);
    assert.deepEqual(result.content, [{ type: "text", text: "counted" }]);
    assert.deepEqual(seen, [1, 2, 3]);
    await client.close();
  },
);

test("a session ends with its MCP server, and what it stored can still be had", { timeout: 30_000 }, async (context) => {
  const streams = await startStreams(context);
  const { url } = await startMcp(context, streams.url, async () => {});
  const { client, transport } = connect(url, () => {});
  await client.connect(transport);
  const ids = [];
  await client.request({ method: "tools/call", params: { name: "count", arguments: {} } }, CallToolResultSchema, {
    onresumptiontoken: (id) => ids.push(id),
  });
  const { sessionId } = transport;
  await client.close();

  const { url: next } = await startMcp(context, streams.url, async () => {});
  const refused = await missed(next, sessionId, ids[0], "not initialized");
  assert.equal(refused.status, 400, refused.text);
  const replaying = await listen(context, (req, res) => {
    const eventStore = new StreamdirEventStore(`${streams.url}mcp/${req.headers["mcp-session-id"]}/`);
    return new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, eventStore }).handleRequest(req, res);
  });
  const { status, text } = await missed(replaying, sessionId, ids[0], "counted");
  assert.equal(status, 200);
  const numbers = [...text.matchAll(/"data":(\d)/g)].map(([, number]) => Number(number));
  // The first id stands for the beginning.
  assert.deepEqual(numbers, [1, 2, 3]);
});
