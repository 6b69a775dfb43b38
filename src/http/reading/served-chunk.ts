// Prepares a chunk once for all its readers, and answers each.

import { etagMatches, formatEtag, type AnswerEnd } from "../../protocol/etag.js";
import { jsonArrayOf } from "../../protocol/json/json-frame.js";
import type { Chunk, Stream } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/** A chunk as every reader of it gets it (docs/api.md, Read). */
export interface ServedChunk {
  readonly contentType: string;
  readonly body: Buffer;
  readonly etag: string;
  /** How long a cache may keep it; `null` where the stream never expires. */
  readonly cacheableMs: number | null;
  /** How the body is coded; `null` where a client can't ask for a coding. */
  readonly coding: "gzip" | "identity" | null;
  /** The headers that say where the reader is after it: a flat list of names and values. */
  readonly placeHeaders: readonly string[];
}

/** What the URL names: a place; another place each time, like `now`; or the stream alone, which a HEAD names too. */
export type Named = "place" | "moving" | "stream";

/** Prepares a chunk for its readers. */
export function serve(stream: Stream, chunk: Chunk, nowMs: number): ServedChunk {
  const endOffset = stream.offsetAt(chunk.to);
  const placeHeaders = ["Stream-Next-Offset", endOffset];
  if (chunk.upToDate) placeHeaders.push("Stream-Up-To-Date", "true");
  if (chunk.closed) placeHeaders.push("Stream-Closed", "true");
  return {
    contentType: stream.config.contentType,
    body: stream.isJson ? jsonArrayOf(chunk.bytes) : chunk.bytes,
    etag: formatEtag(stream.id, stream.offsetAt(chunk.from), endOffset, endOf(chunk)),
    cacheableMs: cacheableMsOf(stream, nowMs),
    coding: null,
    placeHeaders,
  };
}

/** Reads that restart a TTL have to reach the server in time, also through two caches, one behind the other. */
function cacheableMsOf(stream: Stream, nowMs: number): number | null {
  const remainingMs = stream.remainingMs(nowMs);
  return remainingMs === null || stream.ttl === null ? remainingMs : remainingMs / 4;
}

function endOf({ closed, upToDate }: Chunk): AnswerEnd {
  if (closed) return "closed";
  return upToDate ? "tail" : "before";
}

/** Answers one reader with a chunk; with 304 when it has that chunk already. A live read has a `cursor`. */
export function answerChunk(
  { responder, readFreshness }: Context,
  exchange: Exchange,
  chunk: ServedChunk,
  named: Named,
  cursor: string | null = null,
): void {
  const { isPrivate } = exchange;
  const headers = [...chunk.placeHeaders];
  if (cursor !== null) headers.push("Stream-Cursor", cursor);
  const isKept = named !== "moving";
  if (isKept) headers.push("ETag", chunk.etag);
  headers.push("Cache-Control", isKept ? readFreshness.cacheControl(isPrivate, chunk.cacheableMs) : "no-store");
  const vary = varyOf(named, isPrivate, chunk.coding);
  if (vary !== null) headers.push("Vary", vary);
  if (isHeld(exchange, chunk, named)) return responder.send(exchange, 304, headers, null);
  headers.push("Content-Type", chunk.contentType);
  if (chunk.coding === "gzip") headers.push("Content-Encoding", "gzip");
  responder.send(exchange, 200, headers, chunk.body);
}

/** Whether the client has the chunk already: it is answered with 304. */
export function isHeld({ headers: { ifNoneMatch } }: Exchange, { etag }: ServedChunk, named: Named): boolean {
  return named !== "moving" && ifNoneMatch !== null && etagMatches(ifNoneMatch, etag);
}

/** What else than the URL an answer depends on, for caches. */
function varyOf(named: Named, isPrivate: boolean, coding: ServedChunk["coding"]): string | null {
  // Caches must ask each time: otherwise a HEAD would get the end of this read, or of a shorter one, as the tail.
  if (named === "stream") return "*";
  if (coding === null) return isPrivate ? "Authorization" : null;
  return isPrivate ? "Authorization, Accept-Encoding" : "Accept-Encoding";
}
