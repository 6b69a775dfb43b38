import type { Exchange } from "../exchange/exchange.js";

/**
 * The headers of every answer by SSE: nothing on the way may keep it for later, or for somebody else, or compress it,
 * which would hold events back.
 */
export function eventStreamHead({ isPrivate }: Pick<Exchange, "isPrivate">): string[] {
  const headers = ["Content-Type", "text/event-stream", "X-Accel-Buffering", "no"];
  if (isPrivate) headers.push("Cache-Control", "private, no-cache, no-transform", "Vary", "Authorization");
  else headers.push("Cache-Control", "no-cache, no-transform");
  return headers;
}
