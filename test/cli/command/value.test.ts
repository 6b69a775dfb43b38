import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseDuration, parseValue, quoted } from "../../../src/cli/command/value.js";
import { OPTIONS } from "../../../src/options.js";
import type { OptionSpec, OptionValue } from "../../../src/options.js";

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

describe("the value of an option is read", () => {
  const rows: readonly [spec: OptionSpec, text: string, value: OptionValue][] = [
    [OPTIONS.segmentBytes, "64MiB", 64 * MiB],
    [OPTIONS.segmentBytes, "16777216", 16 * MiB],
    [OPTIONS.segmentBytes, "1.5MiB", 1.5 * MiB],
    [OPTIONS.segmentBytes, "8KiB", 8 * KiB],
    [OPTIONS.segmentBytes, "2GiB", 2 * GiB],
    [OPTIONS.segmentBytes, "4096B", 4096],
    [OPTIONS.segmentBytes, "5KB", 5000],
    [OPTIONS.segmentBytes, "10MB", 10_000_000],
    [OPTIONS.segmentBytes, "3GB", 3_000_000_000],
    [OPTIONS.segmentBytes, "64mib", 64 * MiB],
    [OPTIONS.segmentBytes, "5kB", 5000],
    [OPTIONS.segmentBytes, "1.1MiB", 1_153_434],
    [OPTIONS.segmentBytes, "5.1KB", 5100],
    [OPTIONS.sseLifetimeMs, "500ms", 500],
    [OPTIONS.sseLifetimeMs, "1.5s", 1500],
    [OPTIONS.sseLifetimeMs, "1.1s", 1100],
    [OPTIONS.retentionAgeMs, "7d", 604_800_000],
    [OPTIONS.retentionAgeMs, "off", Infinity],
    [OPTIONS.retentionBytes, "off", Infinity],
    [OPTIONS.sseLifetimeMs, "2m", 120_000],
    [OPTIONS.sseLifetimeMs, "1h", 3_600_000],
    [OPTIONS.sseLifetimeMs, "0.5h", 1_800_000],
    [OPTIONS.shutdownTimeoutMs, "0s", 0],
    [OPTIONS.port, "0", 0],
    [OPTIONS.port, "080", 80],
    [OPTIONS.port, "65535", 65535],
    [OPTIONS.readOnly, "true", true],
    [OPTIONS.readOnly, "1", true],
    [OPTIONS.readOnly, "false", false],
    [OPTIONS.readOnly, "0", false],
    [OPTIONS.readMaxAgeMs, "0", 0],
    [OPTIONS.readMaxAgeMs, "0s", 0],
    [OPTIONS.readMaxAgeMs, "1.5s", 1500],
    [OPTIONS.fsync, "no", "no"],
    [OPTIONS.host, "::", "::"],
    [OPTIONS.prefix, "/a/b/", "/a/b/"],
    [OPTIONS.corsOrigin, "https://a.example", "https://a.example"],
  ];
  for (const [spec, text, value] of rows) {
    test(`${spec.flag} "${text}" as ${value}`, () => assert.deepEqual(parseValue(spec, text), { kind: "value", value }));
  }
});

describe("the value of an option is refused", () => {
  const port = "must be from 0 to 65535";
  const size = "must be from 4KiB to 4GiB";
  const unreadableSize = `${size}, written like 64MiB`;
  const time = "must be from 1ms to 1h";
  const unreadableTime = `${time}, with its unit like 30s or 500ms`;
  const rows: readonly [spec: OptionSpec, text: string, words: string][] = [
    [OPTIONS.port, "x", port],
    [OPTIONS.port, "", port],
    [OPTIONS.port, " 80", port],
    [OPTIONS.port, "-1", port],
    [OPTIONS.port, "+80", port],
    [OPTIONS.port, "80.0", port],
    [OPTIONS.port, "1e3", port],
    [OPTIONS.port, "0x50", port],
    [OPTIONS.port, "65536", port],
    [OPTIONS.port, "9".repeat(40), port],
    [OPTIONS.maxLoadedStreams, "0", "must be from 1 to 100000000"],
    [OPTIONS.segmentBytes, "", unreadableSize],
    [OPTIONS.segmentBytes, "64M", unreadableSize],
    [OPTIONS.segmentBytes, "64 MiB", unreadableSize],
    [OPTIONS.segmentBytes, "-64MiB", unreadableSize],
    [OPTIONS.segmentBytes, ".5GiB", unreadableSize],
    [OPTIONS.segmentBytes, "5.GiB", unreadableSize],
    [OPTIONS.segmentBytes, "1TiB", unreadableSize],
    [OPTIONS.segmentBytes, "MiB", unreadableSize],
    [OPTIONS.segmentBytes, "64MiB\n", unreadableSize],
    [OPTIONS.segmentBytes, "4095", size],
    [OPTIONS.segmentBytes, "65GiB", size],
    [OPTIONS.longPollTimeoutMs, "30", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "0", unreadableTime],
    [OPTIONS.readMaxAgeMs, "60", "must be from 0ms to 365d, with its unit like 1m or 500ms"],
    [OPTIONS.longPollTimeoutMs, "", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "-1s", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "1h30m", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "30 s", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "off", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "1w", unreadableTime],
    [OPTIONS.longPollTimeoutMs, "0s", time],
    [OPTIONS.longPollTimeoutMs, "0.4ms", time],
    [OPTIONS.longPollTimeoutMs, "61m", time],
    [OPTIONS.readOnly, "yes", "must be true or false"],
    [OPTIONS.readOnly, "", "must be true or false"],
    [OPTIONS.readOnly, "TRUE", "must be true or false"],
    [OPTIONS.fsync, "never", "must be always or no"],
    [OPTIONS.logFormat, "xml", "must be auto, text or json"],
    [OPTIONS.host, "", "must be a text that is not empty"],
    [OPTIONS.prefix, "v1", "must begin and end with / and hold plain path characters, like /v1/stream/"],
    [OPTIONS.corsOrigin, "example.com", "must be *, auto, or origins like https://example.com, separated by commas"],
  ];
  for (const [spec, text, words] of rows) {
    test(`${spec.flag} ${JSON.stringify(text)}: ${words}`, () => {
      assert.deepEqual(parseValue(spec, text), { kind: "fault", words: `${words}, not ${JSON.stringify(text)}` });
    });
  }
});

describe("input as a refusal quotes it", () => {
  test("keeps a text on one line", () => assert.equal(quoted('a\nb"\u2028'), '"a\\nb\\"\\u2028"'));
  test("cuts a long text", () => assert.equal(quoted("x".repeat(61)), `"${"x".repeat(60)}..."`));
  test("shows a text of the longest length whole", () => assert.equal(quoted("x".repeat(60)), `"${"x".repeat(60)}"`));
});

test("a duration of a task has its unit, and is some", () => {
  for (const [text, ms] of [
    ["30d", 2_592_000_000],
    ["1.5h", 5_400_000],
    ["1ms", 1],
    ["0s", null],
    ["5", null],
    ["", null],
    ["-1s", null],
    ["1e9d", null],
    ["9".repeat(30) + "d", null],
  ] as const)
    assert.equal(parseDuration(text), ms, text);
});
