import { acceptsGzip } from "../../protocol/accept.js";
import { isTextual } from "../../protocol/content-type.js";
import { codedEtag } from "../../protocol/etag.js";
import { isFixed, type ReadStart } from "../../protocol/offset.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { withReadPlace } from "../reading/read-place.js";
import { answerChunk, isHeld, serve, type Named, type ServedChunk } from "../reading/served-chunk.js";

const START: ReadStart = { kind: "start" };

/** `GET`: one chunk from an offset on, or none where there is nothing yet (docs/api.md, Read). */
export function read(context: Context, exchange: Exchange, name: string, offset: ReadStart | null): MaybePromise<void> {
  const asked = offset ?? START;
  const { settings, clock, readBuffers } = context;
  const named = offset === null ? "stream" : isFixed(asked) ? "place" : "moving";
  const options = { allocate: readBuffers.allocatorFor(exchange), client: exchange };
  return withReadPlace(context, exchange, name, asked, (stream, from) =>
    chain(stream.read(from, settings.chunkBytes, options), (chunk) =>
      chain(codedFor(context, exchange, serve(stream, chunk, clock.nowMs()), named), (served) => {
        answerChunk(context, exchange, served, named);
        readBuffers.takeBackAfter(exchange, chunk.bytes);
      }),
    ),
  );
}

/** A chunk in the coding that the client asks for, where that is worth it and can be had. */
function codedFor(
  { compression }: Context,
  exchange: Exchange,
  chunk: ServedChunk,
  named: Named,
): MaybePromise<ServedChunk> {
  if (compression === null || !isTextual(chunk.contentType)) return chunk;
  const plain: ServedChunk = { ...chunk, coding: "identity" };
  if (!acceptsGzip(exchange.headers.acceptEncoding) || !compression.takes(chunk.body.length)) return plain;
  const coded: ServedChunk = { ...chunk, coding: "gzip", etag: codedEtag(chunk.etag, "gzip") };
  if (isHeld(exchange, coded, named)) return coded;
  return compression
    .gzip(chunk.body, () => !exchange.isGone)
    .then((body) => (body === null ? plain : { ...coded, body }));
}
