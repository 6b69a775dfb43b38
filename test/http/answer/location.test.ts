import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { locationOf } from "../../../src/http/answer/location.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";

const HERE = { localAddress: "127.0.0.1", localPort: 4437 };

interface Case {
  readonly headers?: Record<string, string>;
  readonly socket?: object;
  readonly path?: string;
  readonly mount?: string;
  readonly expected: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "the Host header": { headers: { Host: "example.com:8080" }, expected: "http://example.com:8080/a" },
  "where a host has mounted the handler": { headers: { Host: "a" }, mount: "/api", expected: "http://a/api/a" },
  "a host with an IPv6 address": { headers: { Host: "[::1]:4437" }, expected: "http://[::1]:4437/a" },
  "the path as it was sent": { headers: { Host: "a" }, path: "/v1/stream/%41%2f\xe9", expected: "http://a/v1/stream/%41%2f%E9" },
  "what a URI may have of the path": {
    headers: { Host: "a" },
    path: "/v1/stream/a\"<b>\\^`{|}[]\xc3\xa9/!$&'()*+,;=:@-._~",
    expected: "http://a/v1/stream/a%22%3Cb%3E%5C%5E%60%7B%7C%7D%5B%5D%C3%A9/!$&'()*+,;=:@-._~",
  },
  "what a proxy says": {
    headers: { Host: "inner", "X-Forwarded-Host": "outer.example", "X-Forwarded-Proto": "https" },
    expected: "https://outer.example/a",
  },
  "the first of several proxies": {
    headers: { Host: "inner", "X-Forwarded-Host": "first, second", "X-Forwarded-Proto": "HTTPS, http" },
    expected: "https://first/a",
  },
  "no strange scheme": { headers: { Host: "a", "X-Forwarded-Proto": "javascript" }, expected: "http://a/a" },
  "no strange host": { headers: { Host: "a", "X-Forwarded-Host": "evil/path?x" }, expected: "http://a/a" },
  "no host with credentials": { headers: { Host: "a", "X-Forwarded-Host": "user@evil" }, expected: "http://a/a" },
  "no endless host": { headers: { Host: "a", "X-Forwarded-Host": "h".repeat(256) }, expected: "http://a/a" },
  "the address of the connection without a sane host": { headers: { Host: "a b" }, expected: "http://127.0.0.1:4437/a" },
  "an IPv6 connection": { socket: { localAddress: "::1", localPort: 4437 }, expected: "http://[::1]:4437/a" },
  "a connection that is gone": { socket: {}, expected: "http://localhost:80/a" },
  "a connection over TLS": { headers: { Host: "a" }, socket: { encrypted: true }, expected: "https://a/a" },
};

describe("the Location of a stream is made from", () => {
  for (const [title, { headers = {}, socket = HERE, path = "/a", mount = "", expected }] of Object.entries(CASES)) {
    test(title, () => {
      const exchange = { req: { socket }, headers: readHeaders(Object.entries(headers).flat()), target: { path, query: "" }, mount };
      assert.equal(locationOf(exchange as unknown as Exchange), expected); // all that is asked of an exchange here
    });
  }
});
