// The table of errors: every code with its status, and how a problem is encoded.

import type { Refused, RefusalCode } from "../../stream/rules/outcome.js";

/** The codes of what the HTTP layer itself refuses, before the stream layer or instead of it. */
export type HttpCode =
  | "bad-request"
  | "body-incomplete"
  | "credential-missing"
  | "expectation-failed"
  | "header-too-large"
  | "host-not-allowed"
  | "internal-error"
  | "invalid-content-type"
  | "invalid-expires-at"
  | "invalid-header"
  | "invalid-name"
  | "invalid-producer"
  | "invalid-query"
  | "invalid-ticket-request"
  | "invalid-token"
  | "invalid-ttl"
  | "list-too-broad"
  | "method-not-allowed"
  | "no-ticket-key"
  | "not-allowed"
  | "origin-not-allowed"
  | "rate-limited"
  | "read-only"
  | "request-timeout"
  | "shutting-down"
  | "token-in-query"
  | "ttl-and-expires-at"
  | "unknown-path"
  | "unknown-transfer-coding";

/** Every `code` that a problem document can have. */
export type ProblemCode = RefusalCode | HttpCode;

/** A refusal of the stream layer or of the HTTP layer, as its answer carries it. */
export interface Problem extends Omit<Refused, "code"> {
  readonly code: ProblemCode;
  /** The methods that the resource has, for a 405. */
  readonly allow?: string;
  /** After how many seconds to retry, where that is not the same for all of its code. */
  readonly retryAfterSeconds?: number;
}

/** How a problem is answered: the status, the title for people, and after how many seconds to retry. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly retryAfterSeconds?: number;
  /** For `WWW-Authenticate` (RFC 6750, 3). */
  readonly challenge?: string;
}

/** The one place where a refusal becomes a status. docs/errors.md explains each row. */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  "bad-request": { status: 400, title: "The request is not valid HTTP" },
  "body-incomplete": { status: 400, title: "The request ended before it was complete" },
  "content-type-missing": { status: 400, title: "A body needs a Content-Type" },
  "empty-body": { status: 400, title: "An append needs a body" },
  "empty-json-array": { status: 400, title: "The JSON array holds no message" },
  "epoch-must-start-at-zero": { status: 400, title: "A new Producer-Epoch begins with Producer-Seq 0" },
  "invalid-content-type": { status: 400, title: "The Content-Type is not a media type" },
  "invalid-expires-at": { status: 400, title: "Stream-Expires-At is not an RFC 3339 timestamp" },
  "invalid-fork": { status: 400, title: "The fork headers are not valid" },
  "invalid-header": { status: 400, title: "A header is not valid" },
  "invalid-json": { status: 400, title: "The body is not valid JSON" },
  "invalid-name": { status: 400, title: "The stream name is not valid" },
  "invalid-offset": { status: 400, title: "The offset is not valid" },
  "invalid-producer": { status: 400, title: "The producer headers are not valid" },
  "invalid-query": { status: 400, title: "The query is not valid" },
  "invalid-ticket-request": { status: 400, title: "The request for a ticket is not valid" },
  "invalid-ttl": { status: 400, title: "Stream-TTL is not a plain decimal" },
  "list-too-broad": { status: 400, title: "The list looks through too many streams" },
  "token-in-query": {
    status: 400,
    title: "A token does not belong into a URL",
    challenge: 'Bearer error="invalid_request"',
  },
  "ttl-and-expires-at": { status: 400, title: "Stream-TTL and Stream-Expires-At exclude each other" },
  "credential-missing": { status: 401, title: "A credential is needed", challenge: "Bearer" },
  "invalid-token": { status: 401, title: "The credential is not valid", challenge: 'Bearer error="invalid_token"' },
  "not-allowed": {
    status: 403,
    title: "The credential does not allow it",
    challenge: 'Bearer error="insufficient_scope"',
  },
  "origin-not-allowed": { status: 403, title: "Pages of this origin may not change anything here" },
  "stale-epoch": { status: 403, title: "A newer epoch of the producer has taken over" },
  "stream-not-found": { status: 404, title: "The stream does not exist" },
  "unknown-path": { status: 404, title: "Nothing is served at this path" },
  "method-not-allowed": { status: 405, title: "The method is not allowed here" },
  "read-only": { status: 405, title: "The server is read-only" },
  "request-timeout": { status: 408, title: "The request took too long to arrive" },
  "config-mismatch": { status: 409, title: "The stream exists with another configuration" },
  "content-type-mismatch": { status: 409, title: "The stream has another content type" },
  "fork-source-gone": { status: 409, title: "The stream to fork was deleted" },
  "name-held-by-forks": { status: 409, title: "The name's deleted stream is kept by its forks" },
  "no-ticket-key": { status: 409, title: "The server has no key to sign tickets with" },
  "producer-gap": { status: 409, title: "A Producer-Seq is missing" },
  "stream-closed": { status: 409, title: "The stream is closed" },
  "stream-seq-regression": { status: 409, title: "Stream-Seq is not greater than the last one" },
  "too-many-forks": { status: 409, title: "The stream has too many forks" },
  "too-many-producers": { status: 409, title: "The stream has too many active producers" },
  "offset-gone": { status: 410, title: "What was at the offset is gone" },
  "stream-gone": { status: 410, title: "The stream was deleted; its forks live on" },
  "tail-moved": { status: 412, title: "The stream does not end where If-Match says" },
  "body-too-large": { status: 413, title: "The body is larger than the server accepts" },
  "expectation-failed": { status: 417, title: "The only expectation served is 100-continue" },
  "host-not-allowed": { status: 421, title: "The server does not answer to this host name" },
  "rate-limited": { status: 429, title: "The client has sent or read too much" },
  "header-too-large": { status: 431, title: "The request's head is too large" },
  "internal-error": { status: 500, title: "The server failed" },
  "stream-damaged": { status: 500, title: "The stream's stored bytes are damaged" },
  "unknown-transfer-coding": { status: 501, title: "The only transfer coding served is chunked" },
  overloaded: { status: 503, title: "The server is overloaded", retryAfterSeconds: 1 },
  "outcome-unknown": { status: 503, title: "Nobody can say yet whether the change is durable", retryAfterSeconds: 1 },
  "shutting-down": { status: 503, title: "The server is shutting down", retryAfterSeconds: 5 },
  "storage-unavailable": { status: 503, title: "The storage accepts no writes", retryAfterSeconds: 5 },
  "storage-full": { status: 507, title: "The disk is full", retryAfterSeconds: 30 },
};

/** A problem with `code` and whatever else its answer carries. */
export function problem(code: ProblemCode, more: Omit<Problem, "kind" | "code"> = {}): Problem {
  return { kind: "refused", code, ...more };
}

/** Whether a result is a refusal. */
export function isProblem<T extends object>(result: T | Problem): result is Problem {
  return "kind" in result && result.kind === "refused";
}

/** The headers that are a problem's own, as a flat list of names and values. */
export function problemHeaders(refusal: Problem): string[] {
  const headers = ["Content-Type", "application/problem+json", "Cache-Control", "no-store"];
  const { challenge } = PROBLEMS[refusal.code];
  const retryAfterSeconds = refusal.retryAfterSeconds ?? PROBLEMS[refusal.code].retryAfterSeconds;
  if (retryAfterSeconds !== undefined) headers.push("Retry-After", String(retryAfterSeconds));
  if (challenge !== undefined) headers.push("WWW-Authenticate", challenge);
  if (refusal.allow !== undefined) headers.push("Allow", refusal.allow);
  if (refusal.nextOffset !== undefined) headers.push("Stream-Next-Offset", refusal.nextOffset);
  if (refusal.earliestOffset !== undefined) headers.push("Stream-Earliest-Offset", refusal.earliestOffset);
  if (refusal.closed === true) headers.push("Stream-Closed", "true");
  if (refusal.producerEpoch !== undefined) headers.push("Producer-Epoch", String(refusal.producerEpoch));
  if (refusal.producerSeq !== undefined) headers.push("Producer-Seq", String(refusal.producerSeq));
  if (refusal.expectedSeq !== undefined) headers.push("Producer-Expected-Seq", String(refusal.expectedSeq));
  if (refusal.receivedSeq !== undefined) headers.push("Producer-Received-Seq", String(refusal.receivedSeq));
  return headers;
}

/** The problem document (RFC 9457), with the stable `code` and the members of its own that docs/errors.md lists. */
export function problemBody(refusal: Problem): Buffer {
  const { status, title } = PROBLEMS[refusal.code];
  const { code, detail, facts } = refusal;
  return Buffer.from(JSON.stringify({ type: `urn:streamdir:error:${code}`, title, status, code, detail, ...facts }));
}
