// Handles `GET` with `live=sse`.

import type { ParsedOffset } from "../../protocol/offset.js";
import { parseOffset } from "../../protocol/offset.js";
import type { LiveQuery } from "../request/query.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { refusalOfDeleted, whenThere, withReadPlace } from "../reading/read-place.js";
import type { SseFeeds } from "../reading/sse-feed.js";

/** Read before an answer begins, to find out whether there is something to send. */
const PROBE_BYTES = 4096;
const PROBE_BOUNDS = { longestBytes: PROBE_BYTES, leastBytes: 0 };

/** `GET` with `live=sse`: everything from an offset on, as events, until the connection ends (docs/api.md, Follow). */
export function sse(
  context: Context,
  feeds: SseFeeds,
  exchange: Exchange,
  name: string,
  { offset, cursor }: LiveQuery,
): MaybePromise<void> {
  return withReadPlace(context, exchange, name, offset, (stream, from) =>
    // An answer that has begun can't be refused any more, and the client would reconnect again and again.
    whenThere(stream, stream.read(from, PROBE_BYTES, { bounds: PROBE_BOUNDS, client: exchange }), () => {
      const deleted = refusalOfDeleted(stream);
      if (deleted !== null) return context.responder.refuse(exchange, deleted);
      feeds.open(stream, { exchange, from, cursor });
    }),
  );
}

/** The offset with which a browser's EventSource reconnects: the `id` of the last event that it received whole. */
export function lastEventOffset(lastEventId: string | null): ParsedOffset | null {
  const offset = lastEventId === null ? null : parseOffset(lastEventId);
  return offset?.kind === "at" ? offset : null;
}
