import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLog, LOG_LEVELS, oneLine, visibleJson, visibleStrings } from "../../src/ops/log.js";
import type { LogFields, LogLevel, LogOptions } from "../../src/ops/log.js";

const TIME = "2026-01-02T03:04:05.678Z";
const clock = { nowMs: () => Date.parse(TIME) };

function lines(options: Partial<LogOptions>, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = [];
  write(createLog({ level: "debug", format: "text", clock, ...options, write: (line) => written.push(line) }));
  return written;
}

function textOf(message: string, fields?: LogFields): string {
  return lines({ format: "text" }, (log) => log.info(message, fields)).join("\n");
}

function jsonOf(message: string, fields?: LogFields): string {
  return lines({ format: "json" }, (log) => log.info(message, fields)).join("\n");
}

describe("a text log", () => {
  const rows: readonly [title: string, message: string, fields: LogFields | undefined, line: string][] = [
    ["a message alone", "ready", undefined, "ready"],
    [
      "values of every type",
      "recovered",
      { streams: 3, ms: 1.5, clean: true, torn: null },
      "recovered streams=3 ms=1.5 clean=true torn=null",
    ],
    ["plain text without quotes", "a", { dir: "/var/lib/x-1", url: "http://[::1]:80/v1/" }, "a dir=/var/lib/x-1 url=http://[::1]:80/v1/"],
    ["text with a space in quotes", "a", { why: "no room" }, 'a why="no room"'],
    ["text that could be taken for more fields in quotes", "a", { b: 'c" d=e' }, 'a b="c\\" d=e"'],
    ["empty text in quotes", "a", { b: "" }, 'a b=""'],
    ["letters of every script as they are", "a", { name: "größe", other: "日本" }, "a name=größe other=日本"],
    ["line breaks in a value escaped", "a", { b: "1\n2\r\n3" }, 'a b="1\\n2\\r\\n3"'],
    ["Unicode's line breaks in a value escaped", "a", { b: "1\u20282\u20293\u00854" }, 'a b="1\\u20282\\u20293\\u00854"'],
    ["a line break in a name escaped", "a", { "b\nc": 1 }, "a b\\u000ac=1"],
    ["a line break in a message escaped", "one\ntwo", undefined, "one\\u000atwo"],
    ["a terminal's escape sequences escaped", "a", { b: "\u001b[2J" }, 'a b="\\u001b[2J"'],
  ];
  for (const [title, message, fields, line] of rows) {
    test(`writes ${title}`, () => assert.equal(textOf(message, fields), `${TIME} info  ${line}`));
  }

  test("aligns messages of all levels", () => {
    const written = lines({}, (log) => {
      log.debug("a");
      log.info("a");
      log.warn("a");
      log.error("a");
    });
    assert.deepEqual(
      written,
      ["debug", "info ", "warn ", "error"].map((level) => `${TIME} ${level} a`),
    );
  });
});

describe("a JSON log", () => {
  test("writes one object with time, level, message and fields", () => {
    assert.equal(
      jsonOf("ready", { port: 1, tls: false, to: null }),
      `{"time":"${TIME}","level":"info","msg":"ready","port":1,"tls":false,"to":null}`,
    );
  });

  test("keeps what the head says when a field has its name", () => {
    const line = jsonOf("ready", { msg: "other", time: "never", level: "error", a: 1 });
    assert.deepEqual(JSON.parse(line), { time: TIME, level: "info", msg: "ready", a: 1 });
  });

  for (const nasty of ["1\n2", "1\r2", "1\u20282", "1\u20292", "1\u00852", "\u001b[2J", "\u202e", "\ud800", "\u{e0001}", '"}']) {
    test(`writes ${oneLine(JSON.stringify(nasty))} on one line that reads back the same`, () => {
      const line = jsonOf(nasty, { [nasty]: nasty });
      assert.match(line, /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u);
      const { msg, [nasty]: value } = JSON.parse(line);
      assert.deepEqual([msg, value], [nasty, nasty]);
    });
  }
});

describe("JSON for people", () => {
  const hidden = ["\u007f", "\u009b31m", "\u00ad", "\u202e", "\u2028", "\u2029", "\u2066", "\ufeff", "\u{e0001}"];

  for (const text of hidden)
    test(`shows ${visibleJson(text)}, and reads back the same`, () => {
      const value = { [text]: [text, "ä🌊"] };
      for (const json of [visibleJson(value), visibleStrings(JSON.stringify(value, null, "\t"))]) {
        assert.doesNotMatch(json, /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        assert.ok(json.includes("ä🌊"));
        assert.deepEqual(JSON.parse(json), value);
      }
    });

  test("stays as it was written where there is nothing to show", () => {
    for (const json of ['{\t"a":\r\n1.0, "b" : "\\u009b"}', '"\u00a0ä\u2027\u202f\u3000🌊"']) assert.equal(visibleStrings(json), json);
    assert.equal(visibleStrings('{\t"a":"\u009b"}'), '{\t"a":"\\u009b"}');
  });
});

describe("a log's level", () => {
  const severities = ["debug", "info", "warn", "error"] as const;
  const kept: Readonly<Record<LogLevel, number>> = { debug: 4, info: 3, warn: 2, error: 1, silent: 0 };
  for (const level of LOG_LEVELS) {
    test(`${level} keeps ${kept[level]} of the four severities`, () => {
      const written = lines({ level }, (log) => severities.forEach((severity) => log[severity](severity)));
      assert.deepEqual(
        written.map((line) => line.split(" ").at(-1)),
        severities.slice(4 - kept[level]),
      );
    });
  }
});

test("a log takes its time from the system when it is given no clock", () => {
  const before = Date.now();
  const written: string[] = [];
  createLog({ level: "info", format: "json", write: (line) => written.push(line) }).info("now");
  const time = Date.parse(JSON.parse(written[0] ?? "{}").time);
  assert.ok(time >= before && time <= Date.now());
});
