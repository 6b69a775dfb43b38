import { sameMediaType } from "../../protocol/content-type.js";
import { messagesLength } from "../../protocol/json/json-frame.js";
import type { ParsedOffset, TokenPlace } from "../../protocol/offset.js";
import {
  TrimmedStreamError,
  type ForkOrigin,
  type MaybePromise,
  type Position,
  type StoredStream,
  type StreamConfig,
} from "../../storage/storage.js";
import { fromBeginning, type TrimmedAtTimes } from "./beginning.js";
import type { CreateHead, ForkRequest } from "./command.js";
import { refuseContentType } from "./content-type-refusal.js";
import { offsetIn } from "./offset-tokens.js";
import { refuse, type Refused } from "./outcome.js";

/** What a fork needs to know of its source. */
export interface ForkSource extends TrimmedAtTimes {
  readonly stored: StoredStream;
  readonly isJson: boolean;
  /** End of the durable bytes. */
  readonly tail: Position;
  /** Whether it could have given out this token. */
  isOwnToken(place: TokenPlace): boolean;
  locate(offset: ParsedOffset): MaybePromise<Position | "start" | Refused>;
  /** Durable bytes; of a JSON stream whole messages. */
  read(from: Position, maxBytes: number): MaybePromise<{ readonly bytes: Buffer }>;
}

/** A stream to fork, and where. */
export interface ForkBase<S> {
  readonly source: S;
  readonly origin: ForkOrigin;
}

/** Most forks of one stream that are not gone, and most forks of forks in a row. */
const MAX_FORKS = 100_000;
const MAX_FORK_DEPTH = 1000;
/** How far behind the fork offset the messages of a sub-offset are looked for, and how much of it is read at a time. */
const MAX_SCAN_BYTES = 64 * 1024 * 1024;
const SCAN_STEP_BYTES = 1024 * 1024;

/** Where a fork of `source` begins, or why there can't be one (docs/api.md, Fork a stream; the source is there). */
export async function forkOrigin(
  source: ForkSource,
  request: ForkRequest,
  contentType: string | null,
): Promise<ForkOrigin | Refused> {
  const { stored } = source;
  const refusal = refuseFork(stored, contentType);
  if (refusal !== null) return refusal;
  const point = await forkPoint(source, request);
  if (typeof point !== "number") return point;
  const earliest = { position: stored.earliest, segmentStart: stored.segmentStartBefore(stored.earliest) };
  // It may have gone while it was looked for.
  if (point < earliest.position) return refuse("offset-gone", { earliestOffset: offsetIn(stored, earliest.position) });
  const { offset, subOffset } = request;
  return { name: stored.name, id: stored.id, point, earliest, offset, subOffset };
}

/** Why there can't be a fork of `source` at any place; `null` when there can. */
export function refuseFork({ config, forkCount, forkDepth }: StoredStream, contentType: string | null): Refused | null {
  if (contentType !== null && !sameMediaType(contentType, config.contentType)) {
    return refuseContentType("source", config.contentType, contentType);
  }
  if (forkCount >= MAX_FORKS) return refuse("too-many-forks", { detail: `The source has ${MAX_FORKS} forks.` });
  if (forkDepth >= MAX_FORK_DEPTH)
    return refuse("too-many-forks", { detail: `The source is the end of ${MAX_FORK_DEPTH} forks in a row.` });
  return null;
}

async function forkPoint(source: ForkSource, { place, subOffset }: ForkRequest): Promise<Position | Refused> {
  if (place?.kind === "at" && !source.isOwnToken(place))
    return refuse("invalid-offset", { detail: "The offset was not given out by the source." });
  const from = place === null ? source.tail : await source.locate(place);
  if (from === "start") return fromBeginning(source, (earliest) => keptPoint(source, earliest, subOffset));
  return typeof from === "number" ? pointBehind(source, from, subOffset) : from;
}

/** The same, if it is still kept when it is found. */
async function keptPoint(source: ForkSource, from: Position, subOffset: number): Promise<Position | Refused> {
  const point = await pointBehind(source, from, subOffset);
  if (typeof point === "number" && point < source.stored.earliest) throw new TrimmedStreamError(source.stored);
  return point;
}

/** The position `subOffset` bytes, or messages of a JSON stream, behind `from`. */
async function pointBehind(source: ForkSource, from: Position, subOffset: number): Promise<Position | Refused> {
  if (subOffset === 0) return from;
  if (source.isJson) return behindMessages(source, from, subOffset);
  return from + subOffset <= source.tail ? from + subOffset : pastTheTail();
}

/** The position behind `count` messages from `from` on. */
async function behindMessages(source: ForkSource, from: Position, count: number): Promise<Position | Refused> {
  let left = count;
  for (let at = from; at < source.tail;) {
    if (at - from >= MAX_SCAN_BYTES)
      return refuse("invalid-fork", {
        detail: "The sub-offset is too far behind the fork offset: give a later offset.",
      });
    const { bytes } = await source.read(at, SCAN_STEP_BYTES);
    const found = messagesLength(bytes, left);
    at += found.length;
    left -= found.count;
    if (left === 0) return at;
  }
  return pastTheTail();
}

function pastTheTail(): Refused {
  return refuse("invalid-fork", { detail: "The sub-offset is past the source's tail." });
}

/**
 * The configuration of a fork: what the request leaves open is inherited. A lifetime is inherited whole or not at all.
 */
export function forkConfig(
  source: StreamConfig,
  { contentType, ttlSeconds, expiresAtMs }: CreateHead,
  nowMs: number,
  forkedFrom: ForkOrigin,
): StreamConfig {
  const lifetime = ttlSeconds === null && expiresAtMs === null ? source : { ttlSeconds, expiresAtMs };
  return {
    contentType: contentType ?? source.contentType,
    createdAtMs: nowMs,
    ttlSeconds: lifetime.ttlSeconds,
    expiresAtMs: lifetime.expiresAtMs,
    forkedFrom,
  };
}

/** Why a stream can't be forked that can't be found. */
export function refuseSource(refusal: Refused): Refused {
  if (refusal.code === "stream-gone") return refuse("fork-source-gone");
  return refusal.code === "stream-not-found"
    ? refuse("stream-not-found", { detail: "The source of the fork does not exist." })
    : refusal;
}
