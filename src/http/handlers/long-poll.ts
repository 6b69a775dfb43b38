// Handles `GET` with `live=long-poll`.

import { isFixed } from "../../protocol/offset.js";
import type { LiveQuery } from "../request/query.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { whenThere, withReadPlace } from "../reading/read-place.js";
import { serve } from "../reading/served-chunk.js";
import { answerNews, type WaitingRooms } from "../reading/long-polls.js";

/** `GET` with `live=long-poll`: what follows an offset, as soon as there is something (docs/api.md, Wait for more). */
export function longPoll(
  context: Context,
  rooms: WaitingRooms,
  exchange: Exchange,
  name: string,
  query: LiveQuery,
): MaybePromise<void> {
  const { settings, clock } = context;
  return withReadPlace(context, exchange, name, query.offset, (stream, from) =>
    whenThere(stream, stream.read(from, settings.chunkBytes, { client: exchange }), (chunk) => {
      const wait = { exchange, position: chunk.to, cursor: query.cursor, isMoving: !isFixed(query.offset) };
      if (chunk.from === chunk.to) rooms.enter(stream, wait);
      else answerNews(context, wait, serve(stream, chunk, clock.nowMs()));
    }),
  );
}
