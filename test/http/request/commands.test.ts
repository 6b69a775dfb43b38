import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isProblem } from "../../../src/http/encoding/problems.js";
import { RequestHeaders } from "../../../src/http/request/request-headers.js";
import { readAppendHead, readCreateHead } from "../../../src/http/request/commands.js";
import type { TokenPlace } from "../../../src/protocol/offset.js";
import type { AppendHead, CreateHead } from "../../../src/stream/rules/command.js";

type Fields = Partial<Omit<RequestHeaders, "hasBody">>;

function headersOf(fields: Fields): RequestHeaders {
  return Object.assign(new RequestHeaders(), fields);
}

/** What a head is read as, or the code of its refusal. */
function outcome<T extends object>(result: T): T | string {
  return isProblem(result) ? result.code : result;
}

const FORK = { streamForkedFrom: "/v1/stream/a" };
const OFFSET = "0000000000000005_0000000007000009";
const CREATE: CreateHead = { contentType: null, ttlSeconds: null, expiresAtMs: null, closed: false, fork: null };
const CREATES: readonly (readonly [title: string, fields: Fields, expected: Partial<CreateHead> | string])[] = [
  ["no headers", {}, {}],
  ["a content type as sent", { contentType: "Text/Plain; charset=UTF-8" }, { contentType: "Text/Plain; charset=UTF-8" }],
  ["an empty content type is none", { contentType: "" }, {}],
  ["a content type without a subtype", { contentType: "text" }, "invalid-content-type"],
  ["a TTL", { streamTtl: "3600" }, { ttlSeconds: 3600 }],
  ["a TTL of 0", { streamTtl: "0" }, { ttlSeconds: 0 }],
  ["a very long TTL", { streamTtl: "1000000000000000" }, { ttlSeconds: 1e15 }],
  ...["abc", "-1", "00060", "+60", "60.5", "1e3", "", " 60"].map(
    (ttl) => [`the TTL ${JSON.stringify(ttl)}`, { streamTtl: ttl }, "invalid-ttl"] as const,
  ),
  ["an expiry", { streamExpiresAt: "2026-01-01T00:00:00Z" }, { expiresAtMs: Date.UTC(2026, 0, 1) }],
  ["an expiry that is no timestamp", { streamExpiresAt: "tomorrow" }, "invalid-expires-at"],
  ["a TTL and an expiry", { streamTtl: "0", streamExpiresAt: "2026-01-01T00:00:00Z" }, "ttl-and-expires-at"],
  ["a condition that would not be looked at", { ifNoneMatch: "*" }, "invalid-header"],
  ["an If-Match, which is for POST", { ifMatch: `"${OFFSET}"` }, "invalid-header"],
  ["closed", { streamClosed: "true" }, { closed: true }],
  ["closed, in capitals", { streamClosed: "TRUE" }, { closed: true }],
  ["closed, with another value", { streamClosed: "yes" }, {}],
  ["closed, without a value", { streamClosed: "" }, {}],
  [
    "a fork of a stream's end",
    { streamForkedFrom: "/v1/stream/a/b%20c" },
    { fork: { source: "a/b c", offset: null, place: null, subOffset: 0 } },
  ],
  [
    "a fork at an offset",
    { ...FORK, streamForkOffset: OFFSET },
    { fork: { source: "a", offset: OFFSET, place: { kind: "at", partStart: 5, byteInPart: 7, check: 9 }, subOffset: 0 } },
  ],
  [
    "a fork at a sub-offset",
    { ...FORK, streamForkOffset: "-1", streamForkSubOffset: "3" },
    { fork: { source: "a", offset: "-1", place: { kind: "start" }, subOffset: 3 } },
  ],
  [
    "a fork at no sub-offset of the end",
    { ...FORK, streamForkSubOffset: "0" },
    { fork: { source: "a", offset: null, place: null, subOffset: 0 } },
  ],
  ["a fork of nothing", { streamForkedFrom: "" }, "invalid-fork"],
  ["a fork of a path that is no stream's", { streamForkedFrom: "/v2/stream/a" }, "invalid-fork"],
  ["a fork of a stream that can't be", { streamForkedFrom: "/v1/stream/a//b" }, "invalid-fork"],
  ["a fork's offset without a fork", { streamForkOffset: "-1" }, "invalid-fork"],
  ["a fork's sub-offset without a fork", { streamForkSubOffset: "0" }, "invalid-fork"],
  ["a fork's sub-offset without its offset", { ...FORK, streamForkSubOffset: "1" }, "invalid-fork"],
  ...["", "5", "0000000000000005_000000000000000x"].map(
    (offset) => [`a fork at the offset ${JSON.stringify(offset)}`, { ...FORK, streamForkOffset: offset }, "invalid-offset"] as const,
  ),
  ...["", "-1", "05", "+1", "1.5", "abc"].map(
    (sub) =>
      [
        `a fork at the sub-offset ${JSON.stringify(sub)}`,
        { ...FORK, streamForkOffset: OFFSET, streamForkSubOffset: sub },
        "invalid-fork",
      ] as const,
  ),
];

const APPEND: AppendHead = { contentType: null, closes: false, producer: null, seq: null, ifMatch: null };
const PRODUCER = { producerId: "p", producerEpoch: "0", producerSeq: "7" };
const APPENDS: readonly (readonly [title: string, fields: Fields, expected: Partial<AppendHead> | string])[] = [
  ["an If-Match", { ifMatch: `"${OFFSET}"` }, { ifMatch: { kind: "at", partStart: 5, byteInPart: 7, check: 9 } as TokenPlace }],
  ...["*", OFFSET, `W/"${OFFSET}"`, `"${OFFSET}", "${OFFSET}"`, '"-1"', '"now"', '""', ""].map(
    (value) => [`the If-Match ${value}`, { ifMatch: value }, "invalid-header"] as const,
  ),
  ["a condition that would not be looked at", { ifNoneMatch: "*" }, "invalid-header"],
  ["an If-Match of a producer", { ifMatch: `"${OFFSET}"`, producerId: "p", producerEpoch: "0", producerSeq: "0" }, "invalid-header"],
  ["no headers", {}, {}],
  ["a content type that nobody can have is for the stream to compare", { contentType: "nonsense" }, { contentType: "nonsense" }],
  ["an empty content type is none", { contentType: "" }, {}],
  ["closing", { streamClosed: "True" }, { closes: true }],
  ["not closing", { streamClosed: "1" }, {}],
  ["a sequence", { streamSeq: "10" }, { seq: "10" }],
  ["the longest sequence", { streamSeq: "s".repeat(256) }, { seq: "s".repeat(256) }],
  ["a sequence that is too long", { streamSeq: "s".repeat(257) }, "invalid-header"],
  ["an empty sequence", { streamSeq: "" }, "invalid-header"],
  ["a producer", PRODUCER, { producer: { id: "p", epoch: 0, seq: 7 } }],
  ["the longest producer id", { ...PRODUCER, producerId: "p".repeat(256) }, { producer: { id: "p".repeat(256), epoch: 0, seq: 7 } }],
  ["the highest epoch", { ...PRODUCER, producerEpoch: "9007199254740991" }, { producer: { id: "p", epoch: 2 ** 53 - 1, seq: 7 } }],
  ["a producer id that is too long", { ...PRODUCER, producerId: "p".repeat(257) }, "invalid-producer"],
  ["an empty producer id", { ...PRODUCER, producerId: "" }, "invalid-producer"],
  ["a producer without an id", { producerEpoch: "0", producerSeq: "0" }, "invalid-producer"],
  ["a producer without an epoch", { producerId: "p", producerSeq: "0" }, "invalid-producer"],
  ["a producer without a sequence number", { producerId: "p", producerEpoch: "0" }, "invalid-producer"],
  ...["", "-1", "01", "1.0", "1e3", "9007199254740992", "x"].flatMap((number) => [
    [`the epoch ${JSON.stringify(number)}`, { ...PRODUCER, producerEpoch: number }, "invalid-producer"] as const,
    [`the sequence number ${JSON.stringify(number)}`, { ...PRODUCER, producerSeq: number }, "invalid-producer"] as const,
  ]),
];

describe("the head of a PUT", () => {
  for (const [title, fields, expected] of CREATES) {
    test(title, () =>
      assert.deepEqual(
        outcome(readCreateHead(headersOf(fields), "/v1/stream/")),
        typeof expected === "string" ? expected : { ...CREATE, ...expected },
      ),
    );
  }
});

describe("the head of a POST", () => {
  for (const [title, fields, expected] of APPENDS) {
    test(title, () =>
      assert.deepEqual(outcome(readAppendHead(headersOf(fields))), typeof expected === "string" ? expected : { ...APPEND, ...expected }),
    );
  }
});
