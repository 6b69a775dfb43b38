// Listens on the addresses of `--admin-listen`.

import { AdminDispatcher } from "../http/admin-dispatch.js";
import { ConnectionsByClient } from "../http/bounds/connections-by-client.js";
import type { Context } from "../http/context/context.js";
import { HttpServer, type RequestLimits } from "../http/http-server.js";
import type { Listener } from "../http/listen/listener.js";
import type { ListenPlan } from "../http/listen/plan.js";

/** Connections at a time. A bound of their own: a crowd of clients must not keep out those who watch. */
const MAX_ADMIN_CONNECTIONS = 64;
/** Of one address: nor must one of those keep out the others, such as the probes of an orchestrator. */
const MAX_ADMIN_CONNECTIONS_PER_CLIENT = 16;

/** A server that listens. */
export interface Listening {
  readonly http: HttpServer;
  readonly listeners: readonly Listener[];
}

/** Serves metrics and probes of `context`. Throws what listening throws. */
export async function listenForAdmin(context: Context, plan: ListenPlan, limits: RequestLimits): Promise<Listening> {
  const { clock, log, clients } = context;
  const dispatcher = new AdminDispatcher(context);
  const connectionLimit = { served: MAX_ADMIN_CONNECTIONS, turnedAway: 1 };
  const connectionsByClient = new ConnectionsByClient(MAX_ADMIN_CONNECTIONS_PER_CLIENT, clients);
  const { responder } = dispatcher;
  const bounds = { limits, connectionLimit, connectionsByClient, clients };
  const http = new HttpServer({ dispatcher, responder, clock, log, ...bounds });
  return { http, listeners: await http.listen(plan) };
}

/** Cuts all connections of a server, which listens no more; resolves when it is gone. */
export function closed(http: HttpServer): Promise<void> {
  http.destroyConnections();
  return http.close();
}
