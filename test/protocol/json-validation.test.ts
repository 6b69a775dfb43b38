import assert from "node:assert/strict";
import { test } from "node:test";
import { inspectJson, PIECE_BYTES } from "../../src/protocol/json-validation.js";
import { seededRandom, seedOfRun } from "./seeded-random.js";

/** A container's inside, longer than a piece. */
const LONG_LIST = `${'{"a":[]},'.repeat(PIECE_BYTES / 8)}1`;
const LONG_ARRAY = `[${LONG_LIST}]`;
const LONG_OBJECT = `{${'"k":[1,2],'.repeat(PIECE_BYTES / 8)}"k":1}`;
const LONG_SPACE = " ".repeat(PIECE_BYTES + 1);
const LONG_STRING = `"${LONG_SPACE}"`;

function isValid(body: string): boolean {
  return inspectJson(Buffer.from(body)).kind !== "invalid";
}

function isValidToPlatform(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

test("a large body is valid exactly if the platform's parser takes it whole", () => {
  const valid = [
    LONG_ARRAY,
    LONG_OBJECT,
    ` ${LONG_ARRAY} `,
    `[${LONG_ARRAY},${LONG_OBJECT}]`,
    `{"a":${LONG_ARRAY},"b":${LONG_OBJECT}}`,
    `[[[${LONG_ARRAY}]],1]`,
    `[1${LONG_SPACE}]`,
    `[${LONG_SPACE}1,${LONG_SPACE}2${LONG_SPACE}]`,
    `[${LONG_SPACE}]`,
    `{${LONG_SPACE}}`,
    LONG_SPACE + "1",
    JSON.stringify(LONG_SPACE),
    `{${LONG_STRING}:${LONG_STRING}}`,
    `[${LONG_STRING},1]`,
    `[[${LONG_STRING},1],[${LONG_SPACE}]]`,
    `[[${LONG_ARRAY}],[${LONG_SPACE}1]]`,
    `[${'"\\"[","\\\\",'.repeat(PIECE_BYTES / 8)}1]`,
  ];
  const invalid = [
    LONG_LIST,
    LONG_SPACE,
    `[${LONG_LIST},]`,
    `[,${LONG_LIST}]`,
    `[${LONG_LIST},,1]`,
    `[${LONG_LIST},${LONG_SPACE}]`,
    `[${LONG_SPACE},1]`,
    `[1,${LONG_SPACE},1]`,
    `{${LONG_SPACE},"k":1}`,
    `[${LONG_SPACE},${LONG_SPACE}]`,
    `[1${LONG_ARRAY}2]`,
    `[1${LONG_ARRAY}]`,
    `[${LONG_ARRAY}2]`,
    `[${LONG_ARRAY}${LONG_ARRAY}]`,
    `["a"${LONG_ARRAY}]`,
    `{${LONG_ARRAY}:1}`,
    `{"k":${LONG_ARRAY},${LONG_ARRAY}}`,
    `{"k" ${LONG_ARRAY}}`,
    `{"k":1:${LONG_ARRAY}}`,
    `{${LONG_LIST}}`,
    `[${LONG_OBJECT.slice(1, -1)}]`,
    `[${LONG_LIST}}`,
    `[${LONG_LIST}`,
    `${LONG_LIST}]`,
    `${LONG_ARRAY}]`,
    `${LONG_ARRAY}1`,
    `1${LONG_ARRAY}`,
    `${LONG_ARRAY},${LONG_ARRAY}`,
    `[[${LONG_LIST}},{]]`,
    `[${LONG_STRING},]`,
    `[${LONG_STRING}, ]`,
    `[${LONG_STRING},,1]`,
    `{"k":${LONG_STRING},}`,
    `${LONG_STRING},1`,
    `["${LONG_SPACE}`,
    `"${LONG_SPACE}\\`,
    `"${LONG_SPACE}\\"`,
    `"${LONG_SPACE}\n"`,
    `[${LONG_LIST},\u00a0]`,
    `[${LONG_LIST},\u00a0,1]`,
  ];
  for (const [index, body] of valid.entries()) {
    assert.ok(isValidToPlatform(body), `valid ${index}, the platform`);
    assert.ok(isValid(body), `valid ${index}`);
  }
  for (const [index, body] of invalid.entries()) {
    assert.ok(!isValidToPlatform(body), `invalid ${index}, the platform`);
    assert.ok(!isValid(body), `invalid ${index}`);
  }
});

test("a damaged large body is refused exactly where the platform's parser refuses it", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const whole = `{"a":${LONG_ARRAY},"b":[${LONG_OBJECT},[${LONG_SPACE}${LONG_ARRAY} ,2]],"c":"${"\\n".repeat(100)}"}`;
  // The places that matter: brackets of large containers, and the commas at which runs may end.
  const places = [...whole.matchAll(/"a":\[|1\],|:\[\{"k|1\},\[ | \[\{|1\] ,2|"k":1\}|"c/g)].map((match) => match.index);
  const characters = [...',:[]{}"\\ 01e'];
  for (let round = 0; round < 150; round++) {
    const anywhere = random() < 0.3;
    const near = (places[Math.floor(random() * places.length)] ?? 0) + Math.floor(random() * 6) - 1;
    const at = Math.max(0, anywhere ? Math.floor(random() * whole.length) : near);
    const inserted = random() < 0.3 ? "" : (characters[Math.floor(random() * characters.length)] ?? "");
    const damaged = whole.slice(0, at) + inserted + whole.slice(at + Math.floor(random() * 2));
    assert.equal(isValid(damaged), isValidToPlatform(damaged), `seed ${seed}, round ${round}: ${JSON.stringify(inserted)} at ${at}`);
  }
});

test("the bound on an array's elements holds, whatever the body's size", () => {
  const table: [body: string, atLeast: number][] = [
    ["[]", 0],
    ["[1,[2,3]]", 2],
    [`[${"1,".repeat(99_999)}1]`, 100_000],
    [`[${LONG_ARRAY},[1,2],${LONG_OBJECT}]`, 3],
  ];
  for (const [body, elements] of table) {
    assert.deepEqual(inspectJson(Buffer.from(body)), { kind: "array", maxElements: elements });
  }
});

test("the parser is not given what an unclosed body holds", (t) => {
  const parse = t.mock.method(JSON, "parse");
  assert.equal(inspectJson(Buffer.from(`{"a":[${"{},".repeat(1 << 18)}`)).kind, "invalid");
  for (const call of parse.mock.calls) assert.ok(String(call.arguments[0]).length <= 2 * PIECE_BYTES);
});

test("the parser never gets much more than a piece, and gets each byte about once", (t) => {
  const shapes = [
    `{"a":[${"{},".repeat(1 << 20)}{}]}`,
    `[${"[1],".repeat(1 << 19)}{}]`,
    `${"[".repeat(900)}${`${LONG_ARRAY},`.repeat(20)}1${"]".repeat(900)}`,
    `${'{"k":'.repeat(900)}${LONG_OBJECT}${',"x":1}'.repeat(900)}`,
  ];
  for (const [index, body] of shapes.entries()) {
    const parse = t.mock.method(JSON, "parse");
    assert.notEqual(inspectJson(Buffer.from(body)).kind, "invalid");
    const lengths = parse.mock.calls.map((call) => String(call.arguments[0]).length);
    parse.mock.restore();
    assert.ok(Math.max(...lengths) <= 2 * PIECE_BYTES, `shape ${index}`);
    assert.ok(lengths.reduce((sum, length) => sum + length) <= 1.01 * body.length + 4 * lengths.length, `shape ${index}`);
  }
});
