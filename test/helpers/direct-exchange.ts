import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { DirectConnection } from "../../src/http/node/direct-connection.js";
import { DirectRequest } from "../../src/http/node/direct-request.js";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { OwnResponse } from "../../src/http/node/own-response.js";
import { readHeaders } from "../../src/http/request/request-headers.js";
import { connectionTo, type RawConnection } from "./raw-connection.js";

/** A connection to a server of ours that hands each request that has it for itself to `handle`, as an exchange. */
export function connectDirectly(context: TestContext, handle: (exchange: Exchange) => void): Promise<RawConnection> {
  const server = createServer(
    { IncomingMessage: DirectRequest, ServerResponse: OwnResponse, keepAliveTimeout: 75_000 },
    (req, res) => void req.handOver(res),
  );
  server.on("connection", (socket) => {
    const opened = DirectConnection.open(socket, (req, connection) => {
      const exchange = new Exchange(req, connection, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
      connection.begin(exchange);
      handle(exchange);
      return true;
    });
    socket.on("close", () => opened?.closed());
    socket.on("timeout", () => opened?.timedOut());
  });
  return connectionTo(context, server);
}

/** A request that came to a server of ours, with its connection for itself. */
export async function directExchange(context: TestContext): Promise<{ readonly client: RawConnection; readonly exchange: Exchange }> {
  let arrived: (exchange: Exchange) => void = () => undefined;
  const arrival = new Promise<Exchange>((resolve) => (arrived = resolve));
  const client = await connectDirectly(context, (exchange) => {
    if (exchange.req instanceof DirectRequest) exchange.req.expectNoBody();
    arrived(exchange);
  });
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return { client, exchange: await arrival };
}
