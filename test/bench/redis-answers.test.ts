import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf, RedisAnswers } from "./redis-answers.js";

test("a command is its words with their lengths in bytes", () => {
  assert.equal(commandOf("XADD", "é", "*").toString(), "*3\r\n$4\r\nXADD\r\n$2\r\né\r\n$1\r\n*\r\n");
});

test("an answer may be a line or bytes of a length, in any pieces, and an error is one", () => {
  for (const [text, status] of [
    ["+OK\r\n", 200],
    ["$15\r\n1526919030474-0\r\n", 200],
    ["-ERR wrong\r\n", 500],
    [":12\r\n", 200],
  ] as const) {
    for (let cut = 1; cut < text.length; cut += 1) {
      const answers = new RedisAnswers();
      assert.equal(answers.take(Buffer.from(text.slice(0, cut))), false, `${text} at ${cut}`);
      assert.equal(answers.take(Buffer.from(text.slice(cut))), true);
      assert.deepEqual([answers.status, answers.wireBytes], [status, text.length]);
    }
  }
});
