import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/**
 * `GET /health`: whether the server takes writes (docs/api.md, The server itself). It mentions damaged streams, but
 * they do not make it fail.
 */
export function health({ registry, inFlight, responder }: Context, exchange: Exchange): void {
  const storage = registry.health();
  const reason = inFlight.closing
    ? "The server is shutting down."
    : storage.writable
      ? null
      : (storage.reason ?? "The storage accepts no writes.");
  const { damagedStreams } = storage;
  const verdict = reason === null ? { status: "ok" } : { status: "unavailable", reason };
  const body = damagedStreams === 0 ? verdict : { ...verdict, damagedStreams };
  const headers = ["Content-Type", "application/json", "Cache-Control", "no-store"];
  responder.send(exchange, reason === null ? 200 : 503, headers, Buffer.from(JSON.stringify(body)));
}
