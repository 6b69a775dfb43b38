import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { framedRoom, JsonScanner, MAX_JSON_DEPTH } from "../../../src/protocol/json/json-scanner.js";
import { seededRandom, seedOfRun } from "../seeded-random.js";

const scanner = new JsonScanner();

/** What is stored of `text`, or what is wrong with it; `parts` are its bytes. */
function scanned(text: string, parts: readonly Buffer[] = [Buffer.from(text)]): string {
  scanner.reset();
  let stored = "";
  for (const part of parts) {
    const out = Buffer.alloc(framedRoom(part.length));
    if (scanner.fault === null) stored += out.toString("latin1", 0, scanner.scan(part, out));
  }
  return scanner.isWhole ? stored : (scanner.fault ?? "unfinished");
}

const OUT = Buffer.alloc(100);

function isValid(text: string): boolean {
  scanner.reset();
  scanner.scan(Buffer.from(text, "latin1"), OUT);
  return scanner.isWhole;
}

function isValidToPlatform(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** All texts of up to `length` of `tokens`. */
function* textsOf(tokens: readonly string[], length: number): Generator<string> {
  yield "";
  if (length === 0) return;
  for (const rest of textsOf(tokens, length - 1)) for (const token of tokens) yield token + rest;
}

describe("the JSON scanner accepts exactly what the platform's parser accepts", () => {
  const alphabets: readonly (readonly [
    what: string,
    tokens: readonly string[],
    length: number,
    around: readonly (readonly [string, string])[],
  ])[] = [
    ["numbers", ["0", "7", "-", "+", ".", "e", "E"], 6, [["", ""]]],
    [
      "numbers inside",
      ["0", "1", "-", ".", "e", " "],
      5,
      [
        ["[", "]"],
        ["[1,", ",2]"],
        ['{"a":', "}"],
      ],
    ],
    [
      "structure",
      ["{", "}", "[", "]", ",", ":", '"a"', "1"],
      5,
      [
        ["", ""],
        ["[[", "]]"],
        ['[{"a":', "}]"],
      ],
    ],
    [
      "space",
      ["{", "]", ",", ":", '""', " ", "\n", "\t", "\r", "\u000b", "null"],
      4,
      [
        ["", ""],
        ["[", "]"],
        ["{", "}"],
        ['[{"a":1', "}]"],
      ],
    ],
    [
      "strings",
      ['"', "\\", "u", "0", "A", "g", "n", "/", "\n", "\x1f", "\x7f", "\xff"],
      4,
      [
        ["", ""],
        ['"', '"'],
        ['"\\u0', '"'],
        ['{"', '":1}'],
      ],
    ],
    [
      "words",
      ["t", "r", "u", "e", "ru", "fals", "nul", "l", "1"],
      4,
      [
        ["", ""],
        ["[", "]"],
      ],
    ],
  ];
  for (const [what, tokens, length, around] of alphabets) {
    test(`all short texts of ${what}`, () => {
      for (const inside of textsOf(tokens, length)) {
        for (const [before, after] of around) {
          const text = before + inside + after;
          if (isValid(text) !== isValidToPlatform(text)) assert.fail(`${JSON.stringify(text)}: ${isValid(text)}`);
        }
      }
    });
  }

  test("every byte in every place", () => {
    const places = [
      "",
      "[",
      "[1",
      "[1,",
      "{",
      '{"k"',
      '{"k":',
      '{"k":1',
      '{"k":1,',
      '"',
      '"\\',
      '"\\u',
      '"\\u00',
      "-",
      "0",
      "1",
      "1.",
      "1.5",
      "1e",
      "1e+",
      "1e5",
      "t",
      "fals",
      "nul",
      "1 ",
      "[] ",
    ];
    const ends = ["", "]", "}", '"', "1", "5]", "}]", ":1}", '":1}', "000", '000"', '0"', "rue", "e", "l"];
    for (const place of places) {
      for (const end of ends) {
        for (let byte = 0; byte < 256; byte++) {
          const text = place + String.fromCharCode(byte) + end;
          if (isValid(text) !== isValidToPlatform(text)) assert.fail(`${JSON.stringify(text)}: ${isValid(text)}`);
        }
      }
    }
  });
});

describe("the JSON scanner, on random JSON", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[], otherwise: T): T => items[below(items.length)] ?? otherwise;
  const space = (): string => pick(["", "", "", " ", "\n", "\r\n", "\t "], "");
  const scalars = ["0", "-1.5e3", "12", "true", "false", "null", '""', '"a\\"],{"', '"\xe9\\\\"', '"\\u00e9\\n"'];
  const value = (depth: number): string => {
    const kind = depth === 0 ? 0 : below(3);
    if (kind === 0) return pick(scalars, "0");
    const members = Array.from(
      { length: below(4) },
      (_, index) => `${space()}${kind === 1 ? "" : `"k${index}"${space()}:`}${space()}${value(depth - 1)}${space()}`,
    );
    return kind === 1 ? `[${members.join(",") || space()}]` : `{${members.join(",") || space()}}`;
  };
  const partsOf = (text: string): Buffer[] => {
    const bytes = Buffer.from(text, "latin1");
    const parts: Buffer[] = [];
    for (let from = 0; from < bytes.length;) parts.push(bytes.subarray(from, (from += 1 + below(random() < 0.5 ? 2 : 20))));
    return parts;
  };

  test("comes out the same however it is cut, as its messages", () => {
    for (let round = 0; round < 5000; round++) {
      const text = space() + value(4) + space();
      const message = `seed ${seed}, round ${round}: ${JSON.stringify(text)}`;
      const stored = scanned(text, [Buffer.from(text, "latin1")]);
      assert.equal(scanned(text, partsOf(text)), stored, message);
      const expected: unknown = JSON.parse(text);
      assert.deepEqual(JSON.parse(`[${stored}]`), Array.isArray(expected) ? expected : [expected], message);
      const lines = stored.split("\n");
      assert.equal(scanned(text) === "" ? 0 : lines.length, scanner.messages, message);
      assert.doesNotMatch(stored, /\r|[^,]\n|(^|\n)[ \t]|[ \t]$/, message);
    }
  });

  test("that is damaged is refused exactly where the platform's parser refuses it, however it is cut", () => {
    const characters = [...',:[]{}"\\ 01-.eu\n\x1f\xff'];
    for (let round = 0; round < 20_000; round++) {
      const whole = value(5);
      const at = below(whole.length + 1);
      const damaged = whole.slice(0, at) + (random() < 0.3 ? "" : pick(characters, ",")) + whole.slice(at + below(3));
      const message = `seed ${seed}, round ${round}: ${JSON.stringify(damaged)}`;
      scanned(damaged, partsOf(damaged));
      assert.equal(scanner.isWhole, isValidToPlatform(damaged), message);
    }
  });
});

describe("the JSON scanner", () => {
  test("writes what is stored, without what ends the last message", () => {
    const table: [text: string, stored: string][] = [
      [' {"k": [1,\r\n{}]}\n', '{"k": [1,  {}]}'],
      ['[1, {"k":\n2} ,[3, 4]]', '1,\n{"k": 2},\n[3, 4]'],
      [" 7 ", "7"],
      ["[ \n ]", ""],
      ['"a,b"', '"a,b"'],
    ];
    for (const [text, stored] of table) assert.equal(scanned(text), stored, text);
  });

  test("says what is wrong", () => {
    const table: [text: string, fault: string][] = [
      ["", "unfinished"],
      ["[1", "unfinished"],
      ["-", "unfinished"],
      ["[1]]", "not-json"],
      ["\ufeff{}", "byte-order-mark"],
      ["[\ufeff]", "not-json"],
      ["[".repeat(MAX_JSON_DEPTH + 2), "too-deep"],
      ['{"k":'.repeat(MAX_JSON_DEPTH + 1), "too-deep"],
      ["[".repeat(MAX_JSON_DEPTH + 1), "unfinished"],
    ];
    for (const [text, fault] of table) assert.equal(scanned(text), fault, JSON.stringify(text.slice(0, 10)));
  });

  test("never writes more than there is room for", () => {
    for (const text of ["[1,1,1,1,1,1]", "[[],[],[]]", "[1", ",1", ",1,", "1"]) {
      scanned("[1", [Buffer.from("[1")]);
      const out = Buffer.alloc(text.length * 2 + 2);
      if (text.startsWith("[")) scanner.reset();
      assert.ok(scanner.scan(Buffer.from(text), out) <= framedRoom(text.length), text);
    }
  });

  test("begins anew after a fault", () => {
    assert.equal(scanned("[[1,}"), "not-json");
    assert.equal(scanned('{"k":[1,2]}'), '{"k":[1,2]}');
    assert.equal(scanner.messages, 1);
  });
});
