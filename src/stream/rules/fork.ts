import { sameMediaType } from "../../protocol/content-type.js";
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

/** The source of a fork. */
export interface ForkSource extends TrimmedAtTimes {
  readonly stored: StoredStream;
  readonly isJson: boolean;
  /** End of the durable bytes. */
  readonly tail: Position;
  /** Whether a token is this stream's own. */
  isOwnToken(place: TokenPlace): boolean;
  locate(offset: ParsedOffset): MaybePromise<Position | "start" | Refused>;
}

/** Where messages that were passed end, and how many of those asked for the stream does not have. */
export interface PassedMessages {
  readonly position: Position;
  readonly left: number;
}

/** Passes so many messages of the source after a position; `null` where that is too far to be looked through. */
export type PassMessages = (from: Position, count: number) => Promise<PassedMessages | null>;

/** A stream to fork, and where. */
export interface ForkBase<S> {
  readonly source: S;
  readonly origin: ForkOrigin;
}

/** Most forks of one stream that are not gone, and most forks of forks in a row. */
const MAX_FORKS = 100_000;
const MAX_FORK_DEPTH = 1000;

/** Where a fork of an existing `source` begins, or why there can't be one (docs/api.md, Fork a stream). */
export async function forkOrigin(
  source: ForkSource,
  request: ForkRequest,
  contentType: string | null,
  pass: PassMessages,
): Promise<ForkOrigin | Refused> {
  const { stored } = source;
  const refusal = refuseFork(stored, contentType);
  if (refusal !== null) return refusal;
  const point = await forkPoint(source, request, pass);
  if (typeof point !== "number") return point;
  const earliest = { position: stored.earliest, segmentStart: stored.partStartBefore(stored.earliest) };
  // Retention may have dropped it during the search.
  if (point < earliest.position) return refuse("offset-gone", { earliestOffset: offsetIn(stored, earliest.position) });
  const { offset, subOffset } = request;
  return { name: stored.name, id: stored.id, point, earliest, offset, subOffset };
}

/** Why a stream can't be forked at all; `null` when it can. */
export function refuseFork({ config, forkCount, forkDepth }: StoredStream, contentType: string | null): Refused | null {
  if (contentType !== null && !sameMediaType(contentType, config.contentType)) {
    return refuseContentType("source", config.contentType, contentType);
  }
  if (forkCount >= MAX_FORKS) return refuse("too-many-forks", { detail: `The source has ${MAX_FORKS} forks.` });
  if (forkDepth >= MAX_FORK_DEPTH)
    return refuse("too-many-forks", { detail: `The source is the end of ${MAX_FORK_DEPTH} forks in a row.` });
  return null;
}

async function forkPoint(
  source: ForkSource,
  { place, subOffset }: ForkRequest,
  pass: PassMessages,
): Promise<Position | Refused> {
  if (place?.kind === "at" && !source.isOwnToken(place))
    return refuse("invalid-offset", { detail: "The offset was not given out by the source." });
  const from = place === null ? source.tail : await source.locate(place);
  if (from === "start") return fromBeginning(source, (earliest) => keptPoint(source, earliest, subOffset, pass));
  return typeof from === "number" ? pointAfter(source, from, subOffset, pass) : from;
}

/** The fork point after `from`; throws TrimmedStreamError when retention drops it during the search. */
async function keptPoint(
  source: ForkSource,
  from: Position,
  subOffset: number,
  pass: PassMessages,
): Promise<Position | Refused> {
  const point = await pointAfter(source, from, subOffset, pass);
  if (typeof point === "number" && point < source.stored.earliest) throw new TrimmedStreamError(source.stored);
  return point;
}

/** The position `subOffset` bytes, or messages of a JSON stream, after `from`. */
async function pointAfter(
  source: ForkSource,
  from: Position,
  subOffset: number,
  pass: PassMessages,
): Promise<Position | Refused> {
  if (subOffset === 0) return from;
  if (!source.isJson) return from + subOffset <= source.tail ? from + subOffset : pastTheTail();
  const passed = await pass(from, subOffset);
  if (passed === null)
    return refuse("invalid-fork", { detail: "The sub-offset is too far after the fork offset: give a later offset." });
  return passed.left > 0 ? pastTheTail() : passed.position;
}

function pastTheTail(): Refused {
  return refuse("invalid-fork", { detail: "The sub-offset is past the source's tail." });
}

/** A fork's configuration, which inherits what the request leaves out; TTL and expiry only together. */
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

/** The refusal of a fork whose source was not found. */
export function refuseSource(refusal: Refused): Refused {
  if (refusal.code === "stream-gone") return refuse("fork-source-gone");
  return refusal.code === "stream-not-found"
    ? refuse("stream-not-found", { detail: "The source of the fork does not exist." })
    : refusal;
}
