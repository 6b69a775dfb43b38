import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { quoteValue, quoteWord } from "../../../src/cli/systemd/quoting.js";

describe("a word of a command in a unit", () => {
  const cases: readonly [word: string, written: string][] = [
    ["/usr/bin/node", "/usr/bin/node"],
    ["--retention-bytes=64MiB", "--retention-bytes=64MiB"],
    ["/srv/my streams", '"/srv/my streams"'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ["100%", '"100%%"'],
    ["$HOME", '"$$HOME"'],
    [";", '";"'],
    ["", '""'],
  ];
  for (const [word, written] of cases) test(`is ${written} for ${JSON.stringify(word)}`, () => assert.equal(quoteWord(word), written));

  test("of a setting has its specifiers escaped, and nothing else", () => assert.equal(quoteValue("/a b/%i"), "/a b/%%i"));
});
