import type { Context } from "../context.js";
import type { Exchange } from "../exchange.js";

/** `GET /health`: whether the server takes writes (specification 4.9). */
export function health({ registry, inFlight, responder }: Context, exchange: Exchange): void {
  const storage = registry.health();
  const reason = inFlight.closing ? "The server is shutting down." : storage.writable ? null : (storage.reason ?? "The storage accepts no writes.");
  const body = reason === null ? { status: "ok" } : { status: "unavailable", reason };
  const headers = ["Content-Type", "application/json", "Cache-Control", "no-store"];
  responder.send(exchange, reason === null ? 200 : 503, headers, Buffer.from(JSON.stringify(body)));
}
