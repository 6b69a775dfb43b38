import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readHeaders, RequestHeaders } from "../../../src/http/request/request-headers.js";

/** Header lines as Node has them. */
function raw(...lines: string[]): string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}

function expectation(fields: Partial<RequestHeaders>): RequestHeaders {
  return Object.assign(new RequestHeaders(), fields);
}

describe("request headers are read", () => {
  test("none", () => assert.deepEqual(readHeaders([]), new RequestHeaders()));

  test("without the blanks around a value, which HTTP/2 leaves there", () => {
    const headers = readHeaders(["if-match", ' "a" \t', "stream-closed", "\ttrue", "producer-id", "a b", "stream-ttl", " "]);
    assert.deepEqual(headers, expectation({ ifMatch: '"a"', streamClosed: "true", producerId: "a b", streamTtl: "" }));
  });

  test("all that the protocol knows, in any case", () => {
    const headers = readHeaders(
      raw(
        "Host: a",
        "ORIGIN: b",
        "authorization: Bearer c",
        "Content-Type: d",
        "Content-Length: 5",
        "If-None-Match: e",
        "Last-Event-ID: f",
        "X-Forwarded-For: q",
        "X-Forwarded-Host: g",
        "X-Forwarded-Proto: h",
        "Stream-TTL: 1",
        "stream-expires-at: i",
        "STREAM-CLOSED: true",
        "Stream-Seq: j",
        "Stream-Forked-From: k",
        "Stream-Fork-Offset: l",
        "Stream-Fork-Sub-Offset: m",
        "Producer-Id: n",
        "Producer-Epoch: 2",
        "Producer-Seq: 3",
        "Transfer-Encoding: o",
        "UPGRADE: p",
      ),
    );
    const expected = {
      host: "a",
      origin: "b",
      authorization: "Bearer c",
      contentType: "d",
      contentLength: 5,
      ifNoneMatch: "e",
      lastEventId: "f",
      forwardedFor: "q",
      forwardedHost: "g",
      forwardedProto: "h",
      isPassedOn: true,
      streamTtl: "1",
      streamExpiresAt: "i",
      streamClosed: "true",
      streamSeq: "j",
      streamForkedFrom: "k",
      streamForkOffset: "l",
      streamForkSubOffset: "m",
      producerId: "n",
      producerEpoch: "2",
      producerSeq: "3",
      transferEncoding: "o",
      upgrades: true,
    };
    assert.deepEqual(headers, expectation(expected));
  });

  test("others are passed over, of the same length or not", () => {
    const headers = readHeaders(
      raw("Accept: */*", "Connection: close", "User-Agent: test", "Sec-Fetch-Mode: cors", "X-Very-Long-Header-Name-Of-Somebody: x"),
    );
    assert.deepEqual(headers, new RequestHeaders());
  });

  test("several If-None-Match are one list", () => {
    assert.equal(readHeaders(raw('If-None-Match: "a"', 'if-none-match: "b"')).ifNoneMatch, '"a", "b"');
  });

  test("several X-Forwarded-For are one list", () => {
    assert.equal(readHeaders(raw("X-Forwarded-For: a, b", "x-forwarded-for: c")).forwardedFor, "a, b, c");
  });

  test("several Transfer-Encodings are one list", () => {
    assert.equal(readHeaders(raw("Transfer-Encoding: gzip", "transfer-encoding: chunked")).transferEncoding, "gzip, chunked");
  });
});

describe("a request header that may come once is noticed when it comes again", () => {
  const names = [
    "host",
    "content-type",
    "stream-ttl",
    "stream-expires-at",
    "stream-closed",
    "stream-seq",
    "stream-forked-from",
    "stream-fork-offset",
    "stream-fork-sub-offset",
    "producer-id",
    "producer-epoch",
    "producer-seq",
  ];
  for (const name of names) {
    test(name, () => assert.equal(readHeaders(raw(`${name}: 1`, `${name.toUpperCase()}: 1`)).repeated, name));
  }
});

describe("request headers say whether a body follows", () => {
  const cases: readonly (readonly [line: string, hasBody: boolean])[] = [
    ["Content-Length: 0", false],
    ["Content-Length: 1", true],
    ["Transfer-Encoding: chunked", true],
    ["Content-Type: text/plain", false],
  ];
  for (const [line, hasBody] of cases) test(line, () => assert.equal(readHeaders(raw(line)).hasBody, hasBody));
});

describe("a request over loopback", () => {
  for (const [lines, host, expected] of [
    [[], null, false],
    [[], "localhost", false],
    [["Accept: */*", "User-Agent: Via"], "127.0.0.1:4437", false],
    [[], "app.localhost:80", false],
    [[], "[::1]:4437", false],
    [[], "streams.example.com", true],
    [[], "192.0.2.7:4437", true],
    [[], "localhost.example.com", true],
    [["X-Forwarded-For: 192.0.2.7"], "localhost", true],
    [["x-forwarded-host: streams.example.com"], "localhost", true],
    [["X-FORWARDED-PROTO: "], "localhost", true],
    [["Accept: */*", "Forwarded: for=192.0.2.7"], "localhost", true],
    [["Via: 1.1 proxy"], "localhost", true],
    [["X-Real-IP: 192.0.2.7"], null, true],
  ] as const)
    test(`for ${host} with ${JSON.stringify(lines)} ${expected ? "seems to come through a proxy" : "is this machine's own"}`, () => {
      const headers = readHeaders(raw(...lines, ...(host === null ? [] : [`Host: ${host}`])));
      assert.equal(headers.seemsProxied, expected);
      headers.forwardedFor = headers.forwardedHost = headers.forwardedProto = null;
      assert.equal(headers.seemsProxied, expected, "also where no proxy is believed");
    });
});
