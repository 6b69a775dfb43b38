import { commentsOf } from "./syntax.js";
import { sources, type Check, type Offence, type Tree } from "./tree.js";

/** The measure of what comments cite. */
export const CITATION_CHECKS: readonly Check[] = [
  {
    title: "a page that src cites is there, with the heading",
    find: strayCitations,
    planted: {
      "docs/api.md": "# The interface\n",
      "src/a.ts": "/** A (docs/api.md, Append). */\n// docs/gone.md has it.\n/**\n * B (docs/api.md, The\n * face).\n */\n",
    },
    found: ["src/a.ts:1", "src/a.ts:2", "src/a.ts:3"],
    fine: {
      "docs/api.md": "# The interface\n\n## Wait (long-poll)\n",
      "src/a.ts":
        'const a = "docs/gone.md";\n/** A (docs/api.md, Wait; see there). */\n/**\n * docs/api.md, as B (docs/api.md, The\n * interface) says.\n */\n',
    },
  },
];

/** In parentheses, a page and one of its headings: `(docs/api.md, Read)`, also with more around it. */
const CITATION = /(docs\/[\w/-]+\.md)(?:, (?=[A-Z])([^();]+)[);])?/g;

function strayCitations(tree: Tree): Offence[] {
  const headings = new Map(tree.filter(({ path }) => path.endsWith(".md")).map(({ path, text }) => [path, headingsOf(text)]));
  return sources(tree).flatMap((file) =>
    commentsOf(file).flatMap(({ text, firstLine }) =>
      [...text.replace(/\s*\n\s*(?:\*|\/\/) ?/g, " ").matchAll(CITATION)].flatMap(([, page = "", heading]) => {
        const known = headings.get(page);
        if (known === undefined) return [{ at: `${file.path}:${firstLine}`, says: `cites ${page}, which is not there` }];
        return heading === undefined || known.has(heading)
          ? []
          : [{ at: `${file.path}:${firstLine}`, says: `cites "${heading}" of ${page}, which has no such heading` }];
      }),
    ),
  );
}

/** The headings of a page; one with parentheses also without them. */
function headingsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(headings.flatMap((heading) => [heading, heading.replace(/ \(.*\)$/, "")]));
}
