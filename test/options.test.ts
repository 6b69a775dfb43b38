import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defaultSettings, faultOf, faultOfPrefix, formatValue, OPTIONS } from "../src/options.js";
import type { OptionSpec, OptionValue } from "../src/options.js";
import { MAX_PRODUCERS } from "../src/storage/state.js";

const SPECS: readonly OptionSpec[] = Object.values(OPTIONS);

describe("the table of options", () => {
  for (const spec of SPECS) {
    test(`--${spec.flag} accepts its own default`, () => assert.equal(faultOf(spec, spec.default), null));
    test(`--${spec.flag} has the variable of its name`, () => {
      assert.equal(spec.env, `STREAMDIR_${spec.flag.toUpperCase().replaceAll("-", "_")}`);
    });
  }

  test("keeps the rows of a group together", () => {
    const headings = SPECS.map(({ group }) => group).filter((group, index, all) => group !== all[index - 1]);
    assert.deepEqual(headings, [...new Set(headings)]);
  });

  test("lets one stream have all the producers that it may", () => assert.equal(OPTIONS.maxLoadedProducers.min, MAX_PRODUCERS));

  test("gives every name a default", () => {
    const expected = Object.entries(OPTIONS).map(([name, spec]) => [name, spec.default]);
    assert.deepEqual(Object.entries(defaultSettings()), expected);
  });
});

describe("faultOf", () => {
  const sizeFault = "must be from 1B to 64MiB";
  const rows: readonly [spec: OptionSpec, value: unknown, fault: string | null][] = [
    [OPTIONS.host, "::1", null],
    [OPTIONS.host, "", "must be a text that is not empty"],
    [OPTIONS.host, 1, "must be a text that is not empty"],
    [OPTIONS.port, 0, null],
    [OPTIONS.port, 65535, null],
    [OPTIONS.port, 65536, "must be from 0 to 65535"],
    [OPTIONS.port, -1, "must be from 0 to 65535"],
    [OPTIONS.port, 1.5, "must be from 0 to 65535"],
    [OPTIONS.port, NaN, "must be from 0 to 65535"],
    [OPTIONS.port, "80", "must be from 0 to 65535"],
    [OPTIONS.port, undefined, "must be from 0 to 65535"],
    [OPTIONS.chunkBytes, 1, null],
    [OPTIONS.chunkBytes, 64 * 1024 * 1024, null],
    [OPTIONS.chunkBytes, 64 * 1024 * 1024 + 1, sizeFault],
    [OPTIONS.chunkBytes, 0, sizeFault],
    [OPTIONS.chunkBytes, 1.5, sizeFault],
    [OPTIONS.longPollTimeoutMs, 0.5, "must be from 1ms to 1h"],
    [OPTIONS.longPollTimeoutMs, 1.5, null],
    [OPTIONS.longPollTimeoutMs, Infinity, "must be from 1ms to 1h"],
    [OPTIONS.shutdownTimeoutMs, 0, null],
    [OPTIONS.shutdownTimeoutMs, -1, "must be from 0ms to 1h"],
    [OPTIONS.readOnly, true, null],
    [OPTIONS.readOnly, "true", "must be true or false"],
    [OPTIONS.readOnly, "loopback", "must be true or false"],
    [OPTIONS.ui, "loopback", null],
    [OPTIONS.ui, false, null],
    [OPTIONS.ui, "no", "must be true, false or loopback"],
    [OPTIONS.fsync, "no", null],
    [OPTIONS.fsync, "No", "must be always or no"],
    [OPTIONS.logLevel, "trace", "must be debug, info, warn, error or silent"],
    [OPTIONS.logLevel, ["info"], "must be debug, info, warn, error or silent"],
    [OPTIONS.prefix, "/a/", null],
    [OPTIONS.prefix, "a", "must begin and end with / and hold plain path characters, like /v1/stream/"],
  ];
  for (const [spec, value, fault] of rows) {
    test(`${spec.flag} ${JSON.stringify(value) ?? "undefined"}: ${fault ?? "fine"}`, () => assert.equal(faultOf(spec, value), fault));
  }

  for (const fine of ["*", "https://example.com", "http://localhost:5173,http://[::1]:80", "app://name"]) {
    test(`an origin may be ${fine}`, () => assert.equal(faultOf(OPTIONS.corsOrigin, fine), null));
  }
  for (const wrong of ["", "example.com", "https://a/", "https://a, https://b", "*,https://a", "https://a\r\nx: y", "https://", 1]) {
    test(`an origin may not be ${JSON.stringify(wrong)}`, () => {
      assert.equal(faultOf(OPTIONS.corsOrigin, wrong), "must be *, auto, or origins like https://example.com, separated by commas");
    });
  }
});

describe("faultOfPrefix", () => {
  for (const fine of ["/", "/a/", "/v1/stream/", "/a.b/~c/(d)/", "/.../"]) {
    test(`accepts ${fine}`, () => assert.equal(faultOfPrefix(fine), null));
  }
  for (const wrong of ["", "a/", "/a", "//", "/a//b/", "/a b/", "/%61/", "/a?/", "/a#/", "/./", "/a/../", "/ä/", "/a/\n", 1]) {
    test(`refuses ${JSON.stringify(wrong)}`, () => assert.notEqual(faultOfPrefix(wrong), null));
  }
});

describe("formatValue", () => {
  const rows: readonly [spec: OptionSpec, value: OptionValue, text: string][] = [
    [OPTIONS.segmentBytes, 4 * 1024 ** 3, "4GiB"],
    [OPTIONS.segmentBytes, 1536, "1536B"],
    [OPTIONS.segmentBytes, 2_000_000, "2MB"],
    [OPTIONS.segmentBytes, 0, "0B"],
    [OPTIONS.sseLifetimeMs, 60_000, "1m"],
    [OPTIONS.sseLifetimeMs, 90_000, "90s"],
    [OPTIONS.sseLifetimeMs, 1500, "1500ms"],
    [OPTIONS.sseLifetimeMs, 24 * 3_600_000, "1d"],
    [OPTIONS.port, 4437, "4437"],
    [OPTIONS.readOnly, false, "false"],
    [OPTIONS.host, "::", "::"],
  ];
  for (const [spec, value, text] of rows) test(`${spec.flag} ${value} is ${text}`, () => assert.equal(formatValue(spec, value), text));
});
