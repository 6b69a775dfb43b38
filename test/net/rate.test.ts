import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultOfRate, parseRate, type Rate } from "../../src/net/rate.js";

const CASES: readonly (readonly [text: string, rate: Rate | null])[] = [
  ["200", { requests: 200, bytes: null }],
  ["1", { requests: 1, bytes: null }],
  ["1000000000", { requests: 1e9, bytes: null }],
  ["200,4MiB", { requests: 200, bytes: 4 * 2 ** 20 }],
  ["200,4mib", { requests: 200, bytes: 4 * 2 ** 20 }],
  ["200,1GiB", { requests: 200, bytes: 2 ** 30 }],
  ["200,1GB", { requests: 200, bytes: 1e9 }],
  ["200,1MB", { requests: 200, bytes: 1e6 }],
  ["200,1KiB", { requests: 200, bytes: 1024 }],
  ["200,1KB", { requests: 200, bytes: 1000 }],
  ["200,7B", { requests: 200, bytes: 7 }],
  ["200,7", { requests: 200, bytes: 7 }],
  ["200,1.5KiB", { requests: 200, bytes: 1536 }],
  ["200,0.5", { requests: 200, bytes: 1 }],
  ["0", null],
  ["1000000001", null],
  ["10000000000", null],
  ["-1", null],
  ["1.5", null],
  ["1e3", null],
  ["200,", null],
  ["200,0", null],
  ["200,0.2", null],
  ["200,-1", null],
  ["200,4 MiB", null],
  ["200, 4MiB", null],
  ["200,4TiB", null],
  ["200,4constructor", null],
  ["200,4__proto__", null],
  ["200,MiB", null],
  ["200,1.MiB", null],
  ["200,9007199254740993", null],
  ["200,99999999999GiB", null],
  ["200,4MiB,1", null],
  [",4MiB", null],
  ["", null],
  [" 200", null],
];

describe("a rate", () => {
  for (const [text, rate] of CASES) {
    test(`${JSON.stringify(text)} is ${rate === null ? "none" : `${rate.requests} requests and ${rate.bytes ?? "any number of"} bytes`}`, () => {
      assert.deepEqual(parseRate(text), rate);
      if (rate === null) assert.match(faultOfRate(text) ?? "", /^must be REQUESTS/);
      else assert.equal(faultOfRate(text), null);
    });
  }

  test("may be off, as an option", () => assert.equal(faultOfRate("off"), null));
  test("is a text", () => assert.match(faultOfRate(200) ?? "", /^must be/));
});
