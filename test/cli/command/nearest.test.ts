import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nearest } from "../../../src/cli/command/nearest.js";

describe("the nearest word", () => {
  const known = ["host", "port", "prefix", "ttl", "tail-cache-bytes", "sse-lifetime", "log-level", "log-format"];
  const rows: readonly [title: string, word: string, meant: string | null][] = [
    ["the word itself", "port", "port"],
    ["two letters swapped", "prot", "port"],
    ["a letter left out", "prefx", "prefix"],
    ["a letter too many", "portt", "port"],
    ["a wrong letter", "pork", "port"],
    ["several mistakes in a long word", "tail-cash-byte", "tail-cache-bytes"],
    ["the beginning of a word", "sse", "sse-lifetime"],
    ["the beginning of two words: the first", "log", "log-level"],
    ["a beginning too short to mean one", "lo", null],
    ["too many mistakes", "directory", null],
    ["another short word", "dir", null],
    ["nothing", "", null],
  ];
  for (const [title, word, meant] of rows) {
    test(`${title}: "${word}" is ${meant ?? "none"}`, () => assert.equal(nearest(word, known), meant));
  }

  test("knows nothing among no words", () => assert.equal(nearest("port", []), null));
});
