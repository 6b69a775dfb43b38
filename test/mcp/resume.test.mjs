/** The MCP SDK's client and server, unmodified, with the recipe's event store between them. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
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
  const eventStore = new StreamdirEventStore(`${streams}mcp/${randomUUID()}/`);
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), eventStore });
  await mcp.connect(transport);
  const sockets = new Set();
  const server = http.createServer((req, res) => void transport.handleRequest(req, res));
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(async () => {
    await mcp.close();
    server.closeAllConnections();
    server.close();
  });
  return { url: new URL(`http://127.0.0.1:${server.address().port}/`), cut: () => sockets.forEach((socket) => socket.destroy()) };
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
    const dir = mkdtempSync(join(tmpdir(), "streamdir-mcp-"));
    const streams = await createServer({ dir, port: 0, log: { debug() {}, info() {}, warn() {}, error() {} } });
    context.after(async () => {
      await streams.close();
      rmSync(dir, { recursive: true, force: true });
    });

    const seen = [];
    let goOn = () => {};
    const firstIsSeen = new Promise((resolve) => (goOn = resolve));
    const { url, cut } = await startMcp(context, streams.url, async (number) => {
      if (number !== 2) return;
      await firstIsSeen;
      // From here on the client is told nothing but what it comes back for.
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
