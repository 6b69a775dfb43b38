import assert from "node:assert/strict";
import test, { describe } from "node:test";
import {
  asArray,
  asLines,
  firstLines,
  jsonLine,
  lastLines,
  messagesOf,
  UNREADABLE_JSON,
} from "../../../../src/cli/client/reading/messages.js";

describe("the messages of an answer", () => {
  test("are those of its array, to the byte", () => {
    const messages = messagesOf(Buffer.from('[{"a":1.0},\n[1, 2],"x\\n"]'));
    assert.deepEqual(messages?.map(String), ['{"a":1.0}', "[1, 2]", '"x\\n"']);
    assert.equal(asLines(messages ?? []).toString(), '{"a":1.0}\n[1, 2]\n"x\\n"\n');
    assert.equal(asArray(messages ?? []).toString(), '[{"a":1.0},\n[1, 2],\n"x\\n"]');
  });

  test("are none in an empty array, and not to be had from something else", () => {
    assert.deepEqual(messagesOf(Buffer.from("[]")), []);
    assert.equal(messagesOf(Buffer.from("[1,")), null);
    // Of another server, which bounds no depth.
    assert.equal(messagesOf(Buffer.from(`${"[".repeat(1002)}${"]".repeat(1002)}`)), null);
    assert.match(UNREADABLE_JSON, /not valid JSON, or nested deeper than 1000 levels$/);
  });
});

test("the first lines are counted by their ends", () => {
  const rows = [
    ["a\nb\nc", 2, "a\nb\n", 2],
    ["a\nb", 2, "a\nb", 1],
    ["", 2, "", 0],
  ] as const;
  for (const [text, count, first, lines] of rows) {
    const found = firstLines(Buffer.from(text), count);
    assert.deepEqual([found.bytes.toString(), found.lines], [first, lines]);
  }
});

test("the last lines are counted by their ends, and the last may have none", () => {
  for (const [text, count, last] of [
    ["a\nb\nc\n", 2, "b\nc\n"],
    ["a\nb\nc", 2, "b\nc"],
    ["a\n\n", 1, "\n"],
    ["\n\n", 2, "\n\n"],
    ["a", 1, "a"],
    ["a\n", 3, "a\n"],
    ["", 1, ""],
  ] as const)
    assert.equal(lastLines(Buffer.from(text), count).toString(), last, JSON.stringify([text, count]));
});

test("a line of --json shows what acts on a terminal, with the same value", () => {
  const text = "\u009b31m\u007f\u202e\u2028";
  const shown = "\\u009b31m\\u007f\\u202e\\u2028";
  assert.equal(
    jsonLine(null, Buffer.from(`{\t"n":1.0,"${text}":"${text}"}`), "application/json"),
    `{"offset":null,"data":{\t"n":1.0,"${shown}":"${shown}"}}\n`,
  );
  assert.equal(jsonLine(null, Buffer.from(text), "text/plain"), `{"offset":null,"data":"${shown}"}\n`);
});

test("a line of --json keeps JSON as it was written", () => {
  const data = Buffer.from('{"n":1.0}');
  assert.equal(jsonLine(null, data, "application/json"), '{"offset":null,"data":{"n":1.0}}\n');
  assert.equal(jsonLine("1_2", data, "text/plain"), '{"offset":"1_2","data":"{\\"n\\":1.0}"}\n');
  assert.equal(jsonLine("1_2", Buffer.from([0x80]), "text/plain"), '{"offset":"1_2","base64":"gA=="}\n');
});
