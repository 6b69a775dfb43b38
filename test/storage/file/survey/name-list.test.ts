import assert from "node:assert/strict";
import { test } from "node:test";
import { nameList } from "../../../../src/storage/file/survey/name-list.js";

test("a list of names is quoted, and ends after ten", () => {
  assert.equal(nameList([]), "");
  assert.equal(nameList(["a", 'b"c']), '"a", "b\\"c"');
  assert.match(nameList(Array.from({ length: 12 }, (_, index) => `s${index}`)), /"s9" and 2 more$/);
});
