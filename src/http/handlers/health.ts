import type { Responder } from "../answer/respond.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

const HEADERS: readonly string[] = ["Content-Type", "application/json", "Cache-Control", "no-store"];
const ALIVE = Buffer.from('{"status":"ok"}');

/** `GET /livez`: that the event loop turns. It says nothing of the disk, which a restart would not mend. */
export function livez({ responder }: Pick<Context, "responder">, exchange: Exchange): void {
  responder.send(exchange, 200, HEADERS, ALIVE);
}

/**
 * `GET /health`: whether the server takes writes (docs/api.md, The server itself). It mentions damaged streams, but
 * they do not make it fail.
 */
export function health({ registry, inFlight, responder }: HealthParts, exchange: Exchange): void {
  answer(responder, exchange, registry.health(), inFlight.closing);
}

/** `GET /readyz`: the same, and false from when a stop is asked for: nobody should send requests any more. */
export function readyz({ registry, inFlight, responder }: HealthParts, exchange: Exchange): void {
  answer(responder, exchange, registry.health(), inFlight.leaving);
}

type Health = ReturnType<Context["registry"]["health"]>;

/** What health is told from. */
export type HealthParts = Pick<Context, "registry" | "inFlight" | "responder">;

function answer(responder: Responder, exchange: Exchange, storage: Health, isStopping: boolean): void {
  const reason = isStopping
    ? "The server is shutting down."
    : storage.writable
      ? null
      : (storage.reason ?? "The storage accepts no writes.");
  const { damagedStreams } = storage;
  // Of what takes writes it may say what else is wrong.
  const also = storage.reason === null ? {} : { reason: storage.reason };
  const verdict = reason === null ? { status: "ok", ...also } : { status: "unavailable", reason };
  const body = damagedStreams === 0 ? verdict : { ...verdict, damagedStreams };
  responder.send(exchange, reason === null ? 200 : 503, HEADERS, Buffer.from(JSON.stringify(body)));
}
