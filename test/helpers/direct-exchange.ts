import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { DirectConnection } from "../../src/http/direct-connection.js";
import { DirectRequest } from "../../src/http/direct-request.js";
import { Exchange } from "../../src/http/exchange.js";
import { OwnResponse } from "../../src/http/own-response.js";
import { readHeaders } from "../../src/http/request-headers.js";
import { connectionTo, type RawConnection } from "./raw-connection.js";

/** A request that came to a server of ours, with its connection for itself. */
export async function directExchange(context: TestContext): Promise<{ readonly client: RawConnection; readonly exchange: Exchange }> {
  const server = createServer({ IncomingMessage: DirectRequest, ServerResponse: OwnResponse }, (req, res) => void req.handOver(res));
  const arrived = new Promise<Exchange>((resolve) => {
    server.on("connection", (socket) => {
      const opened = DirectConnection.open(socket, (req, connection) => {
        const exchange = new Exchange(req, connection, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
        req.expectNoBody();
        connection.begin(exchange);
        resolve(exchange);
        return true;
      });
      socket.on("close", () => opened?.closed());
    });
  });
  const client = await connectionTo(context, server);
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return { client, exchange: await arrived };
}
