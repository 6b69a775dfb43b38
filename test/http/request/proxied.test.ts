import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seemsProxied } from "../../../src/http/request/proxied.js";

describe("a request over loopback", () => {
  for (const [headers, host, expected] of [
    [[], null, false],
    [[], "localhost", false],
    [["Accept", "*/*", "User-Agent", "Via"], "127.0.0.1:4437", false],
    [[], "app.localhost:80", false],
    [[], "[::1]:4437", false],
    [[], "streams.example.com", true],
    [[], "192.0.2.7:4437", true],
    [[], "localhost.example.com", true],
    [["X-Forwarded-For", "192.0.2.7"], "localhost", true],
    [["x-forwarded-host", "streams.example.com"], "localhost", true],
    [["X-FORWARDED-PROTO", ""], "localhost", true],
    [["Accept", "*/*", "Forwarded", "for=192.0.2.7"], "localhost", true],
    [["Via", "1.1 proxy"], "localhost", true],
    [["X-Real-IP", "192.0.2.7"], null, true],
  ] as const) {
    test(`for ${host} with ${JSON.stringify(headers)} ${expected ? "seems to come through a proxy" : "is this machine's own"}`, () => {
      assert.equal(seemsProxied(headers, host), expected);
    });
  }
});
