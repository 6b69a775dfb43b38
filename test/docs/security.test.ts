import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const ROOT = new URL("../../", import.meta.url);

test("each threat of the page names tests that are there", () => {
  const page = readFileSync(new URL("docs/SECURITY.md", ROOT), "utf8");
  const rows = page.split("\n").filter((line) => /^\| .+ \| .+ \| .+ \| .+ \|$/.test(line) && !line.startsWith("| who |"));
  assert.ok(rows.length > 10);
  for (const row of rows) {
    const named = [...row.matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
    assert.ok(named.length > 0 || /the same|listed there/.test(row), row);
    for (const path of named) assert.ok(existsSync(new URL(path, ROOT)), path);
  }
});

test("each attack that was tried stays as tests that are there", () => {
  const page = readFileSync(new URL("docs/SECURITY.md", ROOT), "utf8");
  const tried = page.slice(page.indexOf("### What was tried"), page.indexOf("## What is defended"));
  const rows = tried.split("\n").filter((line) => /^\| .+ \| .+ \| .+ \|$/.test(line) && !line.startsWith("| tried |"));
  assert.ok(rows.length > 10);
  for (const row of rows) {
    const named = [...row.matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
    assert.ok(named.length > 0, row);
    for (const path of named) assert.ok(existsSync(new URL(path, ROOT)), path);
  }
});
