import assert from "node:assert/strict";
import test from "node:test";
import { acceptsGzip, preferredType } from "../../src/protocol/accept.js";

const OFFERS = ["text/plain", "text/html", "application/json"] as const;

const ROWS: readonly [accept: string | undefined, expected: string][] = [
  [undefined, "text/plain"],
  ["", "text/plain"],
  ["*/*", "text/plain"],
  ["application/json", "application/json"],
  ["Application/JSON; charset=utf-8", "application/json"],
  ["application/json, text/plain, */*", "application/json"],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"],
  ["text/html;q=0.1, application/json;q=0.2", "application/json"],
  ["text/html; level=1; Q=0.1, application/json;q = 0.2", "application/json"],
  ["*/*, application/json;q=0", "text/plain"],
  ["application/json;q=0.5, */*;q=0.1", "application/json"],
  ["application/*", "application/json"],
  ["text/*;q=0.9, application/*", "application/json"],
  ["text/*", "text/plain"],
  ["image/png", "text/plain"],
  ["application/jsonp", "text/plain"],
  ["application/json;q=nonsense, text/html;q=0.001", "text/html"],
  [";;,,=", "text/plain"],
];
for (const [accept, expected] of ROWS)
  test(`Accept: ${accept} is given ${expected}`, () => assert.equal(preferredType(accept, OFFERS), expected));

const CODINGS: readonly [acceptEncoding: string | null, gzip: boolean][] = [
  [null, false],
  ["", false],
  ["gzip", true],
  ["GZIP", true],
  ["x-gzip", true],
  ["deflate, gzip;q=1.0, *;q=0.5", true],
  ["gzip, deflate, br, zstd", true],
  ["gzip;q=0", false],
  ["gzip;q=0.000", false],
  ["gzip ; q = 0.001", true],
  ["gzip;q=nonsense", false],
  ["*", true],
  ["*;q=0", false],
  ["gzip;q=0, *", false],
  ["br, deflate", false],
  ["identity", false],
  ["identity, gzip;q=0.5", false],
  ["identity;q=0.5, gzip", true],
  ["gzip, identity", true],
  ["gzipped", false],
  [";;,,=", false],
];
for (const [acceptEncoding, gzip] of CODINGS)
  test(`Accept-Encoding ${JSON.stringify(acceptEncoding)} ${gzip ? "asks" : "does not ask"} for gzip`, () => {
    assert.equal(acceptsGzip(acceptEncoding), gzip);
  });
