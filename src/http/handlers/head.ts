import { formatTimestamp } from "../../protocol/timestamp.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import { Stream } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/** `HEAD`: what a stream is, without touching it (docs/api.md, Ask about a stream). */
export function head({ registry, responder, clock }: Context, exchange: Exchange, name: string): MaybePromise<void> {
  return chain(registry.find(name), (found) => {
    if (found instanceof Stream) responder.send(exchange, 200, metadataOf(found, clock.nowMs()), null);
    else responder.refuse(exchange, found);
  });
}

function metadataOf(stream: Stream, nowMs: number): string[] {
  const { contentType, ttlSeconds, expiresAtMs } = stream.config;
  const headers = [
    "Content-Type",
    contentType,
    "Stream-Next-Offset",
    stream.offsetAt(stream.tail),
    "Cache-Control",
    "no-store",
  ];
  if (stream.stored.earliest > 0) headers.push("Stream-Earliest-Offset", stream.earliestOffset);
  if (ttlSeconds !== null)
    headers.push("Stream-TTL", String(remainingSeconds(ttlSeconds, stream.remainingMs(nowMs) ?? 0)));
  if (expiresAtMs !== null) headers.push("Stream-Expires-At", formatTimestamp(expiresAtMs));
  if (stream.closed) headers.push("Stream-Closed", "true");
  return headers;
}

/** Rounded up, and capped: a stream that was just loaded may live a little longer than its TTL. */
function remainingSeconds(ttlSeconds: number, remainingMs: number): number {
  return Math.min(ttlSeconds, Math.ceil(remainingMs / 1000));
}
