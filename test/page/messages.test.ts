import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asLines,
  fromBase64,
  hexDump,
  joined,
  joinedArrays,
  kindOf,
  linesEnd,
  membersOf,
  splitArray,
  splitBytes,
  splitLines,
} from "../../src/page/messages.js";

test("an array is cut into its values as they were written", () => {
  for (const [text, values] of [
    ["", []],
    ["[]", []],
    ["[\n]", []],
    ["[1]", ["1"]],
    ['[\n{"k":1},\n2\n]', ['{"k":1}', "2"]],
    ["[12345678901234567890, 1e2 ,true,null]", ["12345678901234567890", "1e2", "true", "null"]],
    ['["a,b]","\\"]","\\\\"]', ['"a,b]"', '"\\"]"', '"\\\\"']],
    ['[[1,[2]],{"a":[1,2],"b":{}}]', ["[1,[2]]", '{"a":[1,2],"b":{}}']],
  ] as const)
    assert.deepEqual(splitArray(text), values, text);
});

test("an object has its members as they were written, in their order", () => {
  for (const [text, members] of [
    ["{}", []],
    ["{ }", []],
    [
      "[1.0, 2]",
      [
        ["0", "1.0"],
        ["1", "2"],
      ],
    ],
    [
      '{"b":1.0,"2":{"x":[1,"}"]} , "1" : null,"b":1e400}',
      [
        ["b", "1.0"],
        ["2", '{"x":[1,"}"]}'],
        ["1", "null"],
        ["b", "1e400"],
      ],
    ],
    [
      '{"\\u0061\\":,\"":"\\":","":{}}',
      [
        ['a":,', '"\\":"'],
        ["", "{}"],
      ],
    ],
    ['{"__proto__":12345678901234567890}', [["__proto__", "12345678901234567890"]]],
  ] as const)
    assert.deepEqual(membersOf(text), members, text);
  assert.deepEqual(membersOf("[1,2,3]", 2), [
    ["0", "1"],
    ["1", "2"],
  ]);
});

test("text is cut into lines, and bytes into pieces", () => {
  for (const [text, lines] of [
    ["", []],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\n\nb", ["a", "", "b"]],
  ] as const)
    assert.deepEqual(
      splitLines(Buffer.from(text)).map((line) => Buffer.from(line).toString()),
      lines,
    );
  assert.deepEqual(splitLines(Uint8Array.of(0xff, 13, 10, 0xc3)), [Uint8Array.of(0xff, 13), Uint8Array.of(0xc3)]);
  assert.deepEqual(
    ["", "a", "a\n", "a\nbc"].map((text) => linesEnd(Buffer.from(text))),
    [0, 0, 2, 2],
  );
  assert.deepEqual(joined([Uint8Array.of(1, 2), Uint8Array.of(), Uint8Array.of(3)]), Uint8Array.of(1, 2, 3));
  assert.deepEqual(
    splitBytes(new Uint8Array(9000)).map(({ length }) => length),
    [4096, 4096, 808],
  );
  assert.deepEqual(fromBase64("AAEC\n/w=="), Uint8Array.of(0, 1, 2, 255));
});

test("a content type says what messages are", () => {
  for (const [type, kind] of [
    ["application/json; charset=utf-8", "json"],
    ["text/plain", "text"],
    ["application/ld+json", "text"],
    ["application/x-ndjson", "text"],
    ["image/png", "bytes"],
    ["", "bytes"],
  ] as const)
    assert.equal(kindOf(type), kind, type);
});

test("a dump has places, bytes and characters", () => {
  assert.equal(hexDump(new Uint8Array()), "");
  const [first, second] = hexDump(Uint8Array.from({ length: 18 }, (_, at) => at + 0x3f)).split("\n");
  assert.equal(first, "00000000  3f 40 41 42 43 44 45 46  47 48 49 4a 4b 4c 4d 4e  ?@ABCDEFGHIJKLMN");
  assert.equal(second, `00000010  4f 50${" ".repeat(45)}OP`);
});

test("arrays are joined to one, those without members left out", () => {
  const joined = (...texts: string[]): string => Buffer.concat(joinedArrays(texts.map((text) => Buffer.from(text)))).toString();
  assert.equal(joined("[1,\n2]", "[]", '["[]"]'), '[1,\n2,"[]"]');
  assert.equal(joined("[]"), "[]");
});

test("what is typed is lines", () => {
  assert.deepEqual(["a", "a\n", "a\nb"].map(asLines), ["a\n", "a\n", "a\nb\n"]);
});
