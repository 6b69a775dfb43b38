import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** All pages, from the root of the project. */
function pages(): string[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name));
  return ["README.md", "CHANGELOG.md", ...docs].filter((path) => path.endsWith(".md"));
}

/** The anchors of a page: its headings, as the places that show Markdown name them. */
function anchorsOf(path: string): Set<string> {
  const prose = readFileSync(join(ROOT, path), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase());
  return new Set(headings.map((heading) => heading.replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")));
}

for (const page of pages()) {
  test(`${page} links to what is there`, () => {
    const prose = readFileSync(join(ROOT, page), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
    for (const [, link = ""] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [file = "", anchor] = link.split("#", 2);
      const target = file === "" ? page : join(dirname(page), file);
      assert.ok(existsSync(join(ROOT, target)), link);
      if (anchor !== undefined) assert.ok(anchorsOf(target).has(anchor), link);
    }
  });
}
