import assert from "node:assert/strict";
import { test } from "node:test";
import {
  EMPTY_JSON_ARRAY,
  frameJson,
  JsonFramer,
  jsonArrayOf,
  MAX_JSON_DEPTH,
  wholeMessagesLength,
  type JsonFrame,
} from "../../../src/protocol/json/json-frame.js";
import { seededRandom, seedOfRun } from "../seeded-random.js";

/** The stored bytes as text, or what the body is instead. */
function framed(body: string | Buffer): string {
  const frame = frameJson(Buffer.from(body));
  if (frame.kind !== "framed") return frame.kind;
  const text = frame.bytes.toString();
  assert.equal(frame.messages, text.split("\n").length - 1, "messages counts the lines");
  return text;
}

test("a JSON body becomes its messages, one on each line", () => {
  const table: [body: string, stored: string][] = [
    ['{"k":1}', '{"k":1},\n'],
    ["1", "1,\n"],
    ["null", "null,\n"],
    ['"a"', '"a",\n'],
    ["[1]", "1,\n"],
    ['[{"k":1},{"k":2}]', '{"k":1},\n{"k":2},\n'],
    ["[[1,2],[3]]", "[1,2],\n[3],\n"],
    ["[[]]", "[],\n"],
    ["[null,true,-0.5e+9]", "null,\ntrue,\n-0.5e+9,\n"],
    ['["a,b","]","\\"","\\\\","\\\\\\",[{"]', '"a,b",\n"]",\n"\\"",\n"\\\\",\n"\\\\\\",[{",\n'],
    ['{"]":"[,"}', '{"]":"[,"},\n'],
    ['["é🌊\u2028\u007f"]', '"é🌊\u2028\u007f",\n'],
  ];
  for (const [body, stored] of table) assert.equal(framed(body), stored, body);
});

test("a JSON message keeps its bytes, whatever the platform's parser would make of them", () => {
  const messages = ["12345678901234567890", "1e400", "1.0", "-0", '{"a":1,"a":2}', '{"__proto__":1}', '"\\u0041\\/\\ud800"', "[ 1 ,\t2 ]"];
  for (const message of messages) {
    assert.equal(framed(`[${message}]`), `${message},\n`);
    if (!message.startsWith("[")) assert.equal(framed(message), `${message},\n`);
  }
});

test("white space around a JSON message goes, and a line break inside becomes a space", () => {
  const table: [body: string, stored: string][] = [
    [' \t\r\n{"k":1}\r\n', '{"k":1},\n'],
    ['{\r\n\t"k": 1\n}', '{  \t"k": 1 },\n'],
    [" [ 1 ,\n\t2\r ] ", "1,\n2,\n"],
    ['[\n  {\n    "k": [\r1\r]\n  },\n  "a b"\n]\n', '{     "k": [ 1 ]   },\n"a b",\n'],
    ["7\n", "7,\n"],
    ['{"k":\r1}', '{"k": 1},\n'],
    ['{"k":\n1}', '{"k": 1},\n'],
  ];
  for (const [body, stored] of table) assert.equal(framed(body), stored, JSON.stringify(body));
});

test("an empty JSON array has no message", () => {
  for (const body of ["[]", " [ ] ", "[\n\t\r]", `[${" ".repeat(100_000)}]`]) assert.equal(framed(body), "empty-array");
});

test("a body that is no JSON text is invalid", () => {
  const table = [
    "",
    " ",
    "{",
    "}",
    "[",
    "]",
    "[1",
    "[1,]",
    "[,1]",
    "[1,,2]",
    "1 2",
    "1,2",
    "{}{}",
    "[1][2]",
    "{'k':1}",
    '{"k"}',
    '{"k":1,}',
    "{1:1}",
  ];
  table.push(
    '"',
    '"a',
    '"\\x"',
    '"\n"',
    '["a\r"]',
    '"\t"',
    "01",
    "1.",
    ".5",
    "+1",
    "0x1",
    "NaN",
    "undefined",
    "tru",
    "nulll",
    "// a\n1",
    "[1]x",
    "\u00a01",
    "\u20281",
    "[(1])",
  );
  for (const body of table) assert.equal(framed(body), "invalid", JSON.stringify(body));
});

test("the detail of invalid JSON says what is wrong, and where", () => {
  const table: [body: Buffer, detail: RegExp][] = [
    [Buffer.from("{"), /not valid JSON/],
    [Buffer.from("\ufeff{}"), /byte order mark/],
    [Buffer.concat([Buffer.from("\ufeff"), Buffer.alloc(100_000, "1")]), /byte order mark/],
    [Buffer.from([0x22, 0xff, 0x22]), /UTF-8/],
    [Buffer.from([0x22, 0xc3, 0x22]), /UTF-8/],
    [Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /UTF-8/],
    [Buffer.from("{}", "utf16le"), /not valid JSON/],
  ];
  for (const [body, detail] of table) {
    const frame = frameJson(body);
    assert.match(frame.kind === "invalid" ? frame.detail : frame.kind, detail);
  }
});

/** Bodies that are wrong, and the line and the column where they are. */
const WRONG: readonly [body: string | Buffer, line: number, column: number, detail: RegExp][] = [
  ["{", 1, 2, /not valid JSON: it ends at line 1, column 2\.$/],
  ["", 1, 1, /it ends at/],
  ["{]", 1, 2, /unexpected "\]" at line 1, column 2\.$/],
  ['{"a": 1,\n "b": 2,\n}', 3, 1, /unexpected "\}" at/],
  ["[1,\r\n\r\n  tru]", 3, 6, /unexpected "\]"/],
  ["[1\n\n", 3, 1, /it ends/],
  ['["é😀\u2028", x]', 1, 9, /unexpected "x"/],
  ['["é",\n"é"x]', 2, 4, /unexpected "x"/],
  ["[é]", 1, 2, /unexpected character/],
  ['["a\nb"]', 1, 4, /unexpected character/],
  [`${"[".repeat(1001)}[1`, 1, 1002, /nested deeper than 1000 levels at line 1, column 1002\.$/],
  ["\ufeff{}", 1, 1, /byte order mark at line 1, column 1\.$/],
  [Buffer.from('["é\xe9"]', "latin1"), 1, 3, /not valid UTF-8 at line 1, column 3\.$/],
  [Buffer.concat([Buffer.from('[\n"é'), Buffer.from([0xe2, 0x82, 0x22, 0x5d])]), 2, 3, /not valid UTF-8/],
  [Buffer.concat([Buffer.from('[\n"é'), Buffer.from([0xf0, 0x9f, 0x98])]), 2, 3, /not valid UTF-8/],
  [Buffer.concat([Buffer.from("[x"), Buffer.from([0xff])]), 1, 2, /unexpected "x"/],
  [`[\n"${"é".repeat(20_000)}",\n"${"é\\n".repeat(20_000)}"x`, 3, 60_003, /unexpected "x"/],
  [`[${" ".repeat(40_000)}`, 1, 40_002, /it ends/],
  [`[${"1,\n".repeat(40_000)}]`, 40_001, 1, /unexpected "\]"/],
];
for (const [body, line, column, detail] of WRONG) {
  const bytes = Buffer.from(body);
  test(`a wrong body is told where it is wrong, in whatever parts it comes: ${JSON.stringify(bytes.toString().slice(0, 20))}`, async () => {
    const sizes = bytes.length > 1000 ? [bytes.length, 16 * 1024, 7_777] : [bytes.length, 1, 2, 3, 5];
    const frames = [frameJson(bytes)];
    for (const size of sizes) {
      const framer = new JsonFramer();
      for (let at = 0; at < bytes.length; at += size) framer.add(bytes.subarray(at, at + size));
      frames.push(await framer.end());
    }
    for (const frame of frames) {
      assert.ok(frame.kind === "invalid");
      assert.deepEqual([frame.line, frame.column], [line, column]);
      assert.match(frame.detail, detail);
    }
  });
}

test("the stored messages share no memory with the JSON body", () => {
  for (const text of ['{"k":1}', "[1,2]", "[1, 2]"]) {
    const body = Buffer.from(text);
    const frame = frameJson(body);
    const before = frame.kind === "framed" ? frame.bytes.toString() : "";
    body.fill(0);
    assert.equal(frame.kind === "framed" && frame.bytes.toString(), before);
  }
});

test("a JSON message is nested at most 1000 levels deep, in an array or not, small or large", () => {
  const arrays = (depth: number, inside: string): string => "[".repeat(depth) + inside + "]".repeat(depth);
  const objects = (depth: number, inside: string): string => '{"k":'.repeat(depth) + inside + "}".repeat(depth);
  for (const inside of ["1", `"${"x".repeat(100_000)}"`]) {
    const table: [body: string, kind: string][] = [
      [arrays(MAX_JSON_DEPTH + 1, inside), "framed"],
      [arrays(MAX_JSON_DEPTH + 2, inside), "invalid"],
      [`[1,${arrays(MAX_JSON_DEPTH + 1, inside)}]`, "invalid"],
      [objects(MAX_JSON_DEPTH, inside), "framed"],
      [objects(MAX_JSON_DEPTH + 1, inside), "invalid"],
      [`[${objects(MAX_JSON_DEPTH, inside)}]`, "framed"],
      [`[${objects(MAX_JSON_DEPTH + 1, inside)}]`, "invalid"],
      [JSON.stringify("[".repeat(5000) + inside), "framed"],
      [arrays(30_000, inside), "invalid"],
    ];
    for (const [body, kind] of table) {
      const frame = frameJson(Buffer.from(body));
      assert.equal(frame.kind, kind);
      if (frame.kind === "invalid") assert.match(frame.detail, /deeper than 1000 levels/);
    }
  }
});

test("a large JSON body is framed as a small one is", () => {
  const element = '{"a" : [1,\t{}, "\\"],[é"],\n "b":null}';
  const stored = `${element.replace("\n", " ")},\n`;
  assert.equal(framed(`[${Array.from({ length: 5000 }, () => element).join(" ,\r\n")}]`), stored.repeat(5000));
  const large = `[${Array.from({ length: 5000 }, () => element).join(" ,\r\n")}]`;
  const largeStored = `{"k": ${large.replace(/[\r\n]/g, " ")}},\n`;
  assert.equal(framed(`{"k":\n${large}}`), largeStored);
  assert.equal(framed(`[1, {"k":\n${large}} ,2]`), `1,\n${largeStored}2,\n`);
  const text = JSON.stringify("é,]".repeat(50_000));
  assert.equal(framed(` ${text}\n`), `${text},\n`);
});

test("random JSON comes back as its messages", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const spaces = ["", "", "", " ", "\n", "\r\n", "\t "];
  const space = (): string => spaces[Math.floor(random() * spaces.length)] ?? "";
  const scalars = ["0", "-1.5e3", "true", "null", '""', '"a\\"],{"', '"é\\\\"'];
  const value = (depth: number): string => {
    const kind = depth === 0 ? 0 : Math.floor(random() * 3);
    if (kind === 0) return scalars[Math.floor(random() * scalars.length)] ?? "0";
    const members = Array.from(
      { length: Math.floor(random() * 4) },
      (_, index) => `${space()}${kind === 1 ? "" : `"k${index}"${space()}:`}${space()}${value(depth - 1)}${space()}`,
    );
    return kind === 1 ? `[${members.join(",") || space()}]` : `{${members.join(",") || space()}}`;
  };
  for (let round = 0; round < 2000; round++) {
    const body = space() + value(4) + space();
    const expected: unknown = JSON.parse(body);
    const message = `seed ${seed}, round ${round}, body ${JSON.stringify(body)}`;
    const frame = frameJson(Buffer.from(body));
    const stored = frame.kind === "framed" ? frame.bytes : Buffer.alloc(0);
    assert.notEqual(frame.kind, "invalid", message);
    assert.deepEqual(JSON.parse(jsonArrayOf(stored).toString()), Array.isArray(expected) ? expected : [expected], message);
    assert.doesNotMatch(stored.toString(), /\r|[^,]\n|(^|\n)[ \t]/, message);
  }
});

/** The frame of a body that comes in parts of `partBytes`. */
function framedInParts(body: Buffer, partBytes: number): JsonFrame | Promise<JsonFrame> {
  const framer = new JsonFramer();
  for (let from = 0; from < body.length; from += partBytes) framer.add(body.subarray(from, from + partBytes));
  return framer.end();
}

test("a JSON body that comes in parts is framed as when it comes whole", async () => {
  const element = '{"a" : [1,\t{}, "\\"],[é🌊"],\n "b":null}';
  const bodies = [
    "",
    "[]",
    "[ \n]",
    "1",
    " 1.5e3 ",
    '"é🌊"',
    "[1,2]",
    "[1,2",
    "{} {}",
    "\ufeff[]",
    `[${`${element} ,\r\n`.repeat(2000)}1]`,
    `{"k":\n[${`${element},`.repeat(2000)}1]}`,
    `"${"é".repeat(60_000)}"`,
  ];
  const cut = Buffer.from('"é').subarray(0, 2);
  const damaged = [
    cut,
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from([0x5b, 0xff]),
    Buffer.concat([Buffer.from(`[${"1,".repeat(50_000)}x,"`), cut]),
  ];
  for (const [index, body] of [...bodies.map((text) => Buffer.from(text)), ...damaged].entries()) {
    const whole = frameJson(body);
    for (const partBytes of [1, 2, 3, 1000, 16 * 1024, 100_000]) {
      const inParts = await framedInParts(body, partBytes);
      assert.deepEqual(inParts, whole, `body ${index} in parts of ${partBytes}`);
      if (inParts.kind === "framed") assert.equal(inParts.bytes.buffer.byteLength, inParts.bytes.length, "it keeps no room to spare");
    }
  }
});

test("JSON bodies that come at the same time are framed each for itself", () => {
  const texts = ['[{"a":1},2]', '"x,y"', `[${"1,".repeat(40_000)}1]`, "[[1]"];
  const framers = texts.map(() => new JsonFramer());
  const longest = Math.max(...texts.map(({ length }) => length));
  for (let at = 0; at < longest; at += 7)
    for (const [index, framer] of framers.entries()) framer.add(Buffer.from(texts[index]?.slice(at, at + 7) ?? ""));
  for (const [index, framer] of framers.entries())
    assert.deepEqual(framer.end(), frameJson(Buffer.from(texts[index] ?? "")), `text ${index}`);
});

test("JSON messages that are too much for one turn of the event loop take several", async () => {
  const framer = new JsonFramer();
  const text = `"${"x".repeat(1024 * 1024 - 3)}",`;
  framer.add(Buffer.from("["));
  for (let message = 0; message < 39; message += 1) framer.add(Buffer.from(text));
  framer.add(Buffer.from(`${text.slice(0, -1)}]`));
  const framing = framer.end();
  assert.ok(framing instanceof Promise);
  const frame = await framing;
  assert.ok(frame.kind === "framed");
  assert.deepEqual([frame.messages, frame.bytes.length], [40, 40 * (text.length + 1)]);
});

test("the JSON array of a read is the stored range in brackets without its last comma", () => {
  assert.equal(jsonArrayOf(Buffer.from('{"k":1},\n')).toString(), '[{"k":1}]');
  assert.equal(jsonArrayOf(Buffer.from("1,\n2,\n")).toString(), "[1,\n2]");
  assert.equal(jsonArrayOf(Buffer.alloc(0)), EMPTY_JSON_ARRAY);
  assert.equal(EMPTY_JSON_ARRAY.toString(), "[]");
});

test("whole JSON messages end with the last newline", () => {
  const table: [stored: string, length: number][] = [
    ["", 0],
    ["1", 0],
    ["1,", 0],
    ["1,\n", 3],
    ["1,\n2", 3],
    ["1,\n2,", 3],
    ["1,\n2,\n", 6],
  ];
  for (const [stored, length] of table) assert.equal(wholeMessagesLength(Buffer.from(stored)), length, stored);
});
