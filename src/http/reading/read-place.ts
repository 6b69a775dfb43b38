// Finds the stream and the position where a read begins.

import type { ParsedOffset } from "../../protocol/offset.js";
import { chain } from "../../stream/loaded/chain.js";
import type { Refused } from "../../stream/rules/outcome.js";
import { Stream, type Chunk, type MaybePromise, type ReadFrom } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/** What a read does with the place where it begins. */
export type UsePlace = (stream: Stream, from: ReadFrom) => MaybePromise<void>;

/**
 * Finds the stream and the position where a read begins, and restarts the stream's sliding TTL; answers when there is
 * none. The stream stays in memory until `use` is done.
 */
export function withReadPlace(
  context: Context,
  exchange: Exchange,
  name: string,
  offset: ParsedOffset,
  use: UsePlace,
): MaybePromise<void> {
  return chain(context.registry.find(name), (found) => {
    if (!(found instanceof Stream)) return context.responder.refuse(exchange, found);
    const place = chain(found.touch(), () => found.locate(offset));
    if (!(place instanceof Promise)) return usePlace(context, exchange, found, place, use);
    return useLater(context, exchange, found, place, use);
  });
}

function usePlace(
  context: Context,
  exchange: Exchange,
  stream: Stream,
  place: ReadFrom | Refused,
  use: UsePlace,
): MaybePromise<void> {
  return typeof place === "object" ? context.responder.refuse(exchange, place) : use(stream, place);
}

async function useLater(
  context: Context,
  exchange: Exchange,
  stream: Stream,
  place: Promise<ReadFrom | Refused>,
  use: UsePlace,
): Promise<void> {
  stream.retain();
  try {
    await usePlace(context, exchange, stream, await place, use);
  } finally {
    stream.release();
  }
}

/**
 * Continues with a chunk once it is there. The stream stays in memory until then, because a live read goes on with it.
 */
export function whenRead(
  stream: Stream,
  chunk: MaybePromise<Chunk>,
  next: (chunk: Chunk) => MaybePromise<void>,
): MaybePromise<void> {
  if (!(chunk instanceof Promise)) return next(chunk);
  stream.retain();
  return chunk.then(next).finally(() => stream.release());
}
