import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuthFileError, checkedDocument, faultAt, refuseTwice, short } from "../../src/auth/checked-json.js";

const SOURCE = { file: "a.json", text: '{\n "a": [1,\n  "x", true]\n}' };

describe("a checked document", () => {
  test("names the file, the line and the value that is wrong", () => {
    const [first, second, third] = checkedDocument(SOURCE).members(["a"]).required("a").list(3);
    assert.equal(first?.fault("is wrong").message, "a.json:2: a[0] is wrong");
    assert.equal(second?.text(1), "x");
    assert.equal(third?.boolean(), true);
    assert.throws(() => second?.boolean(), new AuthFileError("a.json:3: a[1] must be true or false"));
    assert.throws(() => third?.text(1), new AuthFileError("a.json:3: a[2] must be a text, in double quotes"));
    assert.throws(() => second?.text(0), /at most 0 characters/);
  });

  for (const [read, message] of [
    [() => checkedDocument({ ...SOURCE, text: "{\n\n]" }), /^a\.json:3: the file has "\]" where a key/],
    [() => checkedDocument(SOURCE).members(["b"]), /^a\.json:2: the file has the unknown key "a"; known are b$/],
    [() => checkedDocument(SOURCE).members(["a", "b"]).required("b"), /^a\.json:1: the file needs the key "b"$/],
    [() => checkedDocument(SOURCE).list(1), /^a\.json:1: the file must be a list/],
    [() => checkedDocument(SOURCE).members(["a"]).required("a").list(2), /^a\.json:2: a has 3 items; at most 2/],
    [() => checkedDocument(SOURCE).members(["a"]).required("a").members([]), /^a\.json:2: a must be an object/],
    [() => checkedDocument({ ...SOURCE, text: "[]" }).list(1), /must not be empty/],
    [() => checkedDocument({ ...SOURCE, text: '""' }).text(1), /must not be empty/],
  ] as const)
    test(`says ${message.source}`, () => assert.throws(read, { message }));

  test("tells of the second of two", () => {
    const items = checkedDocument({ file: "a.json", text: "[1,\n1]" }).list(2);
    assert.throws(() => refuseTwice(items, ["x", "x"], (value) => value), /^Error: a\.json:2: \[1\] is the second one with the name "x"/);
    refuseTwice(items, ["x", "y"], (value) => value);
  });

  test("counts lines from 1, and repeats long texts in part", () => {
    assert.equal(faultAt(SOURCE, 0, "x").message, "a.json:1: x");
    assert.equal(faultAt(SOURCE, SOURCE.text.length, "x").message, "a.json:4: x");
    assert.equal(short("a".repeat(70)), `"${"a".repeat(60)}..."`);
  });
});
