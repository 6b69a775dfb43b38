import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { describe, test } from "node:test";
import { CITATION_CHECKS } from "./tidy/citations.js";
import { IMPORT_CHECKS } from "./tidy/imports.js";
import { LANGUAGE_CHECKS } from "./tidy/language.js";
import { LAYOUT_CHECKS, TESTED_ELSEWHERE, TESTS_OF_NO_SOURCE } from "./tidy/layout.js";
import { PACKAGE_CHECKS } from "./tidy/packages.js";
import { PRIVATE_NAME_CHECKS } from "./tidy/private-names.js";
import { ROOM_CHECKS } from "./tidy/rooms.js";
import { SIZE_CHECKS } from "./tidy/size.js";
import { readTree, treeOf, type Offence } from "./tidy/tree.js";
import { WAIT_CHECKS } from "./tidy/waits.js";

const CHECKS = [
  ...SIZE_CHECKS,
  ...IMPORT_CHECKS,
  ...ROOM_CHECKS,
  ...LANGUAGE_CHECKS,
  ...LAYOUT_CHECKS,
  ...PACKAGE_CHECKS,
  ...WAIT_CHECKS,
  ...PRIVATE_NAME_CHECKS,
  ...CITATION_CHECKS,
];

function assertNone(offences: readonly Offence[]): void {
  const lines = offences.map(({ at, says }) => `  ${at}  ${says}`);
  assert.ok(lines.length === 0, `${lines.length} found:\n${lines.join("\n")}`);
}

describe("the tree is tidy", () => {
  const tree = readTree(fileURLToPath(new URL("..", import.meta.url)));

  for (const check of CHECKS) test(check.title, () => assertNone(check.find(tree)));

  test("the tree was read", () => {
    const paths = new Set(tree.map((file) => file.path));
    for (const path of ["package.json", "src/options.ts", "test/tidy.test.ts", ".ci/run"])
      assert.ok(paths.has(path), `${path} is not there`);
  });

  test("every exception names a file that is there", () => {
    const paths = new Set(tree.map((file) => file.path));
    for (const [list, exceptions] of Object.entries({ TESTED_ELSEWHERE, TESTS_OF_NO_SOURCE }))
      assertNone(
        Object.keys(exceptions)
          .filter((path) => !paths.has(path))
          .map((path) => ({ at: path, says: `is gone; take it out of ${list}` })),
      );
  });
});

describe("each measure finds what it is against, and nothing else", () => {
  for (const check of CHECKS) {
    test(check.title, () => {
      assert.ok(check.found.length > 0, "a measure needs an example that it finds");
      const found = check.find(treeOf(check.planted)).map(({ at }) => at);
      assert.deepEqual(found.sort(), [...check.found].sort());
      assertNone(check.find(treeOf(check.fine)));
    });
  }
});
