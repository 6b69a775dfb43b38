import assert from "node:assert/strict";
import test from "node:test";
import { formatMark, parseMark } from "../../../../src/cli/client/append/resume-mark.js";

test("a mark is read as it was written", () => {
  const mark = { id: "a-1", epoch: 2, seq: 3, at: 4, length: 5 };
  assert.equal(formatMark(mark), "a-1:2:3:4:5");
  assert.deepEqual(parseMark("a-1:2:3:4:5"), mark);
  for (const text of ["", "a:1:2:3", ":1:2:3:4", "a:1:2:3:x", "a:-1:2:3:4", "a b:1:2:3:4", "a:1:2:3:1234567890123456"])
    assert.equal(parseMark(text), null, text);
});
