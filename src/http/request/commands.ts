import { isValidContentType } from "../../protocol/content-type.js";
import { parseDecimal } from "../../protocol/decimal.js";
import { parseTimestamp } from "../../protocol/timestamp.js";
import { decodeName } from "../../protocol/names/stream-name.js";
import { parseOffset, START_TOKEN, type TokenPlace } from "../../protocol/offset.js";
import type { AppendHead, CreateHead, ForkRequest } from "../../stream/rules/command.js";
import { problem, type Problem } from "../encoding/problems.js";
import type { RequestHeaders } from "./request-headers.js";

type ProducerStamp = NonNullable<AppendHead["producer"]>;

const MAX_PRODUCER_ID_BYTES = 256;
const MAX_STREAM_SEQ_BYTES = 256;

/** What a PUT asks for (docs/api.md, Create a stream), or why it can't be done. A source is below `prefix`. */
export function readCreateHead(headers: RequestHeaders, prefix: string): CreateHead | Problem {
  const condition = refusalOfCondition(headers);
  if (condition !== null) return condition;
  const fork = readFork(headers, prefix);
  if (fork !== null && "kind" in fork) return fork;
  const contentType = presentText(headers.contentType);
  if (contentType !== null && !isValidContentType(contentType)) return problem("invalid-content-type");
  const ttlSeconds = headers.streamTtl === null ? null : parseDecimal(headers.streamTtl);
  const expiresAtMs = headers.streamExpiresAt === null ? null : parseTimestamp(headers.streamExpiresAt);
  if (headers.streamTtl !== null && ttlSeconds === null) return problem("invalid-ttl");
  if (headers.streamExpiresAt !== null && expiresAtMs === null) return problem("invalid-expires-at");
  if (ttlSeconds !== null && expiresAtMs !== null) return problem("ttl-and-expires-at");
  return { contentType, ttlSeconds, expiresAtMs, closed: isTrue(headers.streamClosed), fork };
}

/** A condition that would not be looked at: what was asked for with it must not be done without it (RFC 9110, 13.1). */
export function refusalOfCondition({ ifMatch, ifNoneMatch }: RequestHeaders): Problem | null {
  if (ifMatch !== null) return problem("invalid-header", { detail: "If-Match goes with POST alone." });
  return ifNoneMatch === null ? null : refusalOfReadCondition();
}

/** A change with a condition that only reads have. */
function refusalOfReadCondition(): Problem {
  return problem("invalid-header", {
    detail: "If-None-Match goes with GET and HEAD alone. A PUT is answered 201 where it has made the stream, else 200.",
  });
}

/** The stream to fork and where (protocol: Forks). */
function readFork(
  { streamForkedFrom, streamForkOffset: offset, streamForkSubOffset }: RequestHeaders,
  prefix: string,
): ForkRequest | Problem | null {
  if (streamForkedFrom === null) {
    return offset === null && streamForkSubOffset === null
      ? null
      : invalidFork("Stream-Fork-Offset and Stream-Fork-Sub-Offset need Stream-Forked-From.");
  }
  if (!streamForkedFrom.startsWith(prefix))
    return invalidFork(`Stream-Forked-From is the path of a stream, like ${prefix}name.`);
  const decoded = decodeName(streamForkedFrom.slice(prefix.length));
  if ("fault" in decoded) return invalidFork(`Stream-Forked-From: ${decoded.fault}`);
  const place = offset === null ? null : parseOffset(offset);
  if (offset !== null && place === null)
    return problem("invalid-offset", { detail: "Stream-Fork-Offset is a token of the source." });
  const subOffset = streamForkSubOffset === null ? 0 : parseDecimal(streamForkSubOffset);
  if (subOffset === null) return invalidFork("Stream-Fork-Sub-Offset is a plain decimal up to 2^53-1.");
  if (subOffset > 0 && offset === null) return invalidFork("Stream-Fork-Sub-Offset above 0 needs Stream-Fork-Offset.");
  return { source: decoded.name, offset, place, subOffset };
}

function invalidFork(detail: string): Problem {
  return problem("invalid-fork", { detail });
}

/** What a POST asks for (docs/api.md, Append), or why it can't be done. */
export function readAppendHead(headers: RequestHeaders): AppendHead | Problem {
  if (headers.ifNoneMatch !== null) return refusalOfReadCondition();
  const seq = headers.streamSeq;
  if (seq !== null && (seq === "" || seq.length > MAX_STREAM_SEQ_BYTES)) {
    return problem("invalid-header", { detail: `Stream-Seq has from 1 to ${MAX_STREAM_SEQ_BYTES} bytes.` });
  }
  const producer = readProducer(headers);
  if (producer !== null && "kind" in producer) return producer;
  const ifMatch = readIfMatch(headers.ifMatch);
  if (ifMatch !== null && producer !== null)
    return problem("invalid-header", { detail: "If-Match does not go with producer headers, which store once." });
  if (ifMatch === "invalid")
    return problem("invalid-header", { detail: `If-Match is one offset in double quotes, like "${START_TOKEN}".` });
  const contentType = presentText(headers.contentType);
  return { contentType, closes: isTrue(headers.streamClosed), producer, seq, ifMatch };
}

/** The place of an `If-Match`, which names one offset; `*` or a list could not say where the stream has to end. */
function readIfMatch(value: string | null): TokenPlace | "invalid" | null {
  if (value === null) return null;
  const place = /^".*"$/.test(value) ? parseOffset(value.slice(1, -1)) : null;
  return place?.kind === "at" ? place : "invalid";
}

/** The three producer headers come together or not at all. */
function readProducer({ producerId: id, producerEpoch, producerSeq }: RequestHeaders): ProducerStamp | Problem | null {
  if (id === null && producerEpoch === null && producerSeq === null) return null;
  if (id === null || producerEpoch === null || producerSeq === null) {
    return invalidProducer("Producer-Id, Producer-Epoch and Producer-Seq come together.");
  }
  // Node turns each byte of a header into one character.
  if (id === "" || id.length > MAX_PRODUCER_ID_BYTES)
    return invalidProducer(`Producer-Id has from 1 to ${MAX_PRODUCER_ID_BYTES} bytes.`);
  const epoch = parseDecimal(producerEpoch);
  const seq = parseDecimal(producerSeq);
  if (epoch === null || seq === null)
    return invalidProducer("Producer-Epoch and Producer-Seq are plain decimals up to 2^53-1.");
  return { id, epoch, seq };
}

function invalidProducer(detail: string): Problem {
  return problem("invalid-producer", { detail });
}

/** An empty value says no more than an absent header. */
function presentText(value: string | null): string | null {
  return value === "" ? null : value;
}

/** Whether a `Stream-Closed` closes: any other value than `true` counts as absent. */
export function isTrue(value: string | null): boolean {
  return value !== null && (value === "true" || value.toLowerCase() === "true");
}
