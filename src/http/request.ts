import { isValidContentType } from "../protocol/content-type.js";
import { parseDecimal } from "../protocol/decimal.js";
import { parseTimestamp } from "../protocol/timestamp.js";
import type { AppendCommand, CreateCommand } from "../stream/command.js";
import { problem, type Problem } from "./problems.js";
import type { RequestHeaders } from "./request-headers.js";

/** A command as the head of its request says it. */
export type CreateHead = Omit<CreateCommand, "body">;

/** A command as the head of its request says it. */
export type AppendHead = Omit<AppendCommand, "body">;

type ProducerStamp = NonNullable<AppendCommand["producer"]>;

const MAX_PRODUCER_ID_BYTES = 256;
const MAX_STREAM_SEQ_BYTES = 256;

/** What a PUT asks for (specification 4.1), or why it can't be done. */
export function readCreateHead(headers: RequestHeaders): CreateHead | Problem {
  if (asksForFork(headers)) return problem("forks-not-supported");
  const contentType = presentText(headers.contentType);
  if (contentType !== null && !isValidContentType(contentType)) return problem("invalid-content-type");
  const ttlSeconds = headers.streamTtl === null ? null : parseDecimal(headers.streamTtl);
  const expiresAtMs = headers.streamExpiresAt === null ? null : parseTimestamp(headers.streamExpiresAt);
  if (headers.streamTtl !== null && ttlSeconds === null) return problem("invalid-ttl");
  if (headers.streamExpiresAt !== null && expiresAtMs === null) return problem("invalid-expires-at");
  if (ttlSeconds !== null && expiresAtMs !== null) return problem("ttl-and-expires-at");
  return { contentType, ttlSeconds, expiresAtMs, closed: isTrue(headers.streamClosed) };
}

/** What a POST asks for (specification 4.2 and 4.3), or why it can't be done. */
export function readAppendHead(headers: RequestHeaders): AppendHead | Problem {
  const seq = headers.streamSeq;
  if (seq !== null && (seq === "" || seq.length > MAX_STREAM_SEQ_BYTES)) {
    return problem("invalid-header", { detail: `Stream-Seq has from 1 to ${MAX_STREAM_SEQ_BYTES} bytes.` });
  }
  const producer = readProducer(headers);
  if (producer !== null && "kind" in producer) return producer;
  return { contentType: presentText(headers.contentType), closes: isTrue(headers.streamClosed), producer, seq };
}

/** The three producer headers come together or not at all. */
function readProducer({ producerId: id, producerEpoch, producerSeq }: RequestHeaders): ProducerStamp | Problem | null {
  if (id === null && producerEpoch === null && producerSeq === null) return null;
  if (id === null || producerEpoch === null || producerSeq === null) {
    return invalidProducer("Producer-Id, Producer-Epoch and Producer-Seq come together.");
  }
  // Node makes one character of each byte of a header.
  if (id === "" || id.length > MAX_PRODUCER_ID_BYTES) return invalidProducer(`Producer-Id has from 1 to ${MAX_PRODUCER_ID_BYTES} bytes.`);
  const epoch = parseDecimal(producerEpoch);
  const seq = parseDecimal(producerSeq);
  if (epoch === null || seq === null) return invalidProducer("Producer-Epoch and Producer-Seq are plain decimals up to 2^53-1.");
  return { id, epoch, seq };
}

function invalidProducer(detail: string): Problem {
  return problem("invalid-producer", { detail });
}

function asksForFork(headers: RequestHeaders): boolean {
  return headers.streamForkedFrom !== null || headers.streamForkOffset !== null || headers.streamForkSubOffset !== null;
}

/** An empty value says no more than an absent header. */
function presentText(value: string | null): string | null {
  return value === "" ? null : value;
}

/** Any other value than `true` counts as absent. */
function isTrue(value: string | null): boolean {
  return value !== null && (value === "true" || value.toLowerCase() === "true");
}
