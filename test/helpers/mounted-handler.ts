// A handler in a server of the test's own, as Express has it.

import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { StreamHandler } from "../../src/server.js";
import { RawConnection, type Answer } from "./raw-connection.js";
import { requestBytes, type RequestParts, type TestScope } from "./test-server.js";

/** What a host does with a request before it passes it on. */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: () => void) => void;

/** A host that listens. */
export interface Host {
  /** Sends one request on a connection of its own, and takes its answer. */
  send(method: string, target: string, parts?: RequestParts): Promise<Answer>;
  connect(): Promise<RawConnection>;
}

/** As Express mounts a handler: it sees the path after `path`, and everything else goes on. */
export function mount(path: string, handler: StreamHandler, before: Middleware = (_req, _res, next) => next()): Middleware {
  return (req, res, next) => {
    const original = req.url ?? "";
    const rest = original.slice(path.length);
    if (!original.toLowerCase().startsWith(path) || !/^([/?]|$)/.test(rest)) return next();
    Object.assign(req, { originalUrl: original, url: rest.startsWith("/") ? rest : `/${rest}` });
    before(req, res, () =>
      handler(req, res, () => {
        req.url = original;
        next();
      }),
    );
  };
}

/** Lets a host of `handler` listen; both are gone when the test is over. */
export async function serve(context: TestScope, server: Server, handler: StreamHandler): Promise<Host> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const connections: RawConnection[] = [];
  context.after(async () => {
    await Promise.all(connections.map((connection) => connection.close()));
    server.close();
    await handler.close();
  });
  const connect = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(port);
    connections.push(connection);
    return connection;
  };
  const send = async (method: string, target: string, parts: RequestParts = {}) => {
    const connection = await connect();
    connection.write(requestBytes(method, target, parts));
    return connection.answer({ toHead: method === "HEAD" });
  };
  return { send, connect };
}
