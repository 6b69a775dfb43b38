import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const pages = ["README.md", ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name))];
const shellBlocks = pages
  .filter((page) => page.endsWith(".md"))
  .flatMap((page) => {
    const blocks = readFileSync(join(ROOT, page), "utf8").matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm);
    return Array.from(blocks, ([, block = ""]) => ({ page, block }));
  });

test("what is copied into zsh, which takes comments for commands, does what it says", () => {
  assert.ok(shellBlocks.length > 50, String(shellBlocks.length));
  const harmful = shellBlocks.flatMap(({ page, block }) =>
    block
      .split("\n")
      // Behind a command a comment would be its arguments.
      .filter((line) => /^\s*[^#\s].*\s#/.test(line) || (/^\s*#/.test(line) && isHarmful(line)))
      .map((line) => `${page}: ${line}`),
  );
  assert.deepEqual(harmful, []);
});

/** Whether a comment would begin a quotation or another command, or write to a file. */
function isHarmful(comment: string): boolean {
  return /[`<>|&;]|\$\(/.test(comment) || comment.split("'").length % 2 === 0 || comment.split('"').length % 2 === 0;
}
