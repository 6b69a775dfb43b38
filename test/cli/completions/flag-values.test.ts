import assert from "node:assert/strict";
import { test } from "node:test";
import { completedOf, singleQuoted } from "../../../src/cli/completions/flag-values.js";

test("what stands for a value says what it can be", () => {
  assert.deepEqual(completedOf("FILE"), { kind: "file" });
  assert.deepEqual(completedOf("DIR"), { kind: "directory" });
  assert.deepEqual(completedOf("auto|text|json"), { kind: "words", words: ["auto", "text", "json"] });
  for (const other of ["NAME", "", "REQUESTS[,BYTES]"]) assert.deepEqual(completedOf(other), { kind: "unknown" });
});

test("no text gets out of its quotes", () => assert.equal(singleQuoted("it's $(x) `y`"), "'it’s $(x) `y`'"));
