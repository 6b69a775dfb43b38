import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NameFilter } from "../../../../src/storage/file/directory/name-filter.js";

function namesOf(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

describe("a filter of names", () => {
  for (const count of [0, 1, 64, 5000]) {
    test(`has each of ${count} names, and few others`, () => {
      const names = namesOf(count, "stream-");
      const filter = new NameFilter(names);
      for (const name of names) assert.ok(filter.mayHave(name), name);
      const taken = namesOf(10_000, "other-").filter((name) => filter.mayHave(name)).length;
      assert.ok(taken <= 100, `${taken} of 10,000 are taken for another`);
    });
  }

  test("has what is added later, and tells when that is too much", () => {
    const filter = new NameFilter(namesOf(64, "a"));
    const later = namesOf(60, "b");
    for (const name of later) filter.add(name);
    assert.deepEqual([later.every((name) => filter.mayHave(name)), filter.isCrowded], [true, false]);
    for (let again = 0; again < 5; again += 1) for (const name of later) filter.add(name);
    assert.equal(filter.isCrowded, false, "a name counts once");
    for (const name of namesOf(60, "c")) filter.add(name);
    assert.equal(filter.isCrowded, true);
  });

  test("takes long names, and names that differ in one character", () => {
    const names = namesOf(100, "x".repeat(200));
    const filter = new NameFilter(names);
    assert.ok(names.every((name) => filter.mayHave(name)));
    assert.equal(
      namesOf(200, "x".repeat(200))
        .slice(100)
        .filter((name) => filter.mayHave(name)).length,
      0,
    );
  });
});
