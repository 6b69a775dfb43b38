import type { ParsedOffset } from "../../protocol/offset.js";
import type { MaybePromise } from "../../stream/stream.js";
import type { Context } from "../context.js";
import type { Exchange } from "../exchange.js";
import { whenRead, withReadPlace } from "../read-place.js";
import { serve } from "../served-chunk.js";
import { answerNews, type WaitingRooms } from "../waiting-room.js";

/** What a long-poll asks for. */
export interface LongPollQuery {
  readonly offset: ParsedOffset;
  readonly cursor: string | null;
}

/** `GET` with `live=long-poll`: what follows an offset, as soon as there is something (specification 4.7). */
export function longPoll(context: Context, rooms: WaitingRooms, exchange: Exchange, name: string, query: LongPollQuery): MaybePromise<void> {
  const { settings, clock } = context;
  return withReadPlace(context, exchange, name, query.offset, (stream, from) =>
    whenRead(stream, stream.read(from, settings.chunkBytes), (chunk) => {
      const wait = { exchange, position: chunk.to, cursor: query.cursor, fromNow: query.offset.kind === "now" };
      if (chunk.from === chunk.to) rooms.enter(stream, wait);
      else answerNews(context, wait, serve(stream, chunk, clock.nowMs()));
    }),
  );
}
