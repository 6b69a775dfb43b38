import { isFixed, type ReadStart } from "../../protocol/offset.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { withReadPlace } from "../reading/read-place.js";
import { answerChunk, serve } from "../reading/served-chunk.js";

const START: ReadStart = { kind: "start" };

/** `GET`: one chunk from an offset on, or none where there is nothing yet (docs/api.md, Read). */
export function read(context: Context, exchange: Exchange, name: string, offset: ReadStart | null): MaybePromise<void> {
  const asked = offset ?? START;
  const { settings, clock, readBuffers } = context;
  return withReadPlace(context, exchange, name, asked, (stream, from) =>
    chain(stream.read(from, settings.chunkBytes, readBuffers.allocatorFor(exchange)), (chunk) => {
      const named = offset === null ? "stream" : isFixed(asked) ? "place" : "moving";
      answerChunk(context, exchange, serve(stream, chunk, clock.nowMs()), named);
      readBuffers.takeBackAfter(exchange, chunk.bytes);
    }),
  );
}
