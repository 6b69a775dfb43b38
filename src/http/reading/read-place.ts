// Finds the stream and the position where a read begins.

import type { ReadStart } from "../../protocol/offset.js";
import { chain } from "../../stream/loaded/chain.js";
import { GONE, NOT_FOUND, type Refused } from "../../stream/rules/outcome.js";
import { Stream, type MaybePromise, type ReadFrom } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/**
 * Finds the stream and the position where a read begins, and restarts the stream's sliding TTL; answers when there is
 * none. The stream stays in memory until `use` is done.
 */
export function withReadPlace(
  context: Context,
  exchange: Exchange,
  name: string,
  offset: ReadStart,
  use: (stream: Stream, from: ReadFrom) => MaybePromise<void>,
): MaybePromise<void> {
  return chain(context.registry.find(name), (found) => {
    if (!(found instanceof Stream)) return context.responder.refuse(exchange, found);
    const place = chain(found.touch(), () => found.locate(offset, exchange));
    const begin = (from: ReadFrom | Refused): MaybePromise<void> => {
      if (typeof from === "object") return context.responder.refuse(exchange, from);
      // While its use was noted.
      const deleted = refusalOfDeleted(found);
      return deleted === null ? use(found, from) : context.responder.refuse(exchange, deleted);
    };
    return whenThere(found, place, begin);
  });
}

/** Why a read can't begin in a stream that was deleted since it was found: nobody would tell a live read of it. */
export function refusalOfDeleted({ phase }: Stream): Refused | null {
  if (phase === "gone") return NOT_FOUND;
  return phase === "kept" ? GONE : null;
}

/** Continues with a place or a chunk of a stream once it is there. The stream stays in memory until `next` is done. */
export function whenThere<T>(
  stream: Stream,
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<void>,
): MaybePromise<void> {
  if (!(value instanceof Promise)) return next(value);
  stream.retain();
  return value.then(next).finally(() => stream.release());
}
