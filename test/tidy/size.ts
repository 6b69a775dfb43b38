import ts from "typescript";
import { lastLineOf, lineOf, nodesIn, syntaxOf } from "./syntax.js";
import { sources, type Check, type Offence, type Tree, type TreeFile } from "./tree.js";

const MAX_COLUMNS = { src: 120, test: 140 };
const MAX_FILE_LINES = { src: 400, test: 500 };
const MAX_FUNCTION_LINES = 70;
/** From this length on a literal excuses its line. */
const MIN_LONG_LITERAL = 100;
const MAX_MEDIAN_LINES = 12;

/** The measures of length. */
export const SIZE_CHECKS: readonly Check[] = [
  {
    title: `no line is longer than ${MAX_COLUMNS.src} columns in src, and ${MAX_COLUMNS.test} in test unless a literal makes it so`,
    find: longLines,
    planted: {
      "src/a.ts": `\n// ${"a".repeat(118)}\nconst b = "${"b".repeat(120)}";\n`,
      "test/a.test.ts": `f("${"a".repeat(60)}", "${"b".repeat(60)}", c, d, e, f, g);\n// ${"c".repeat(138)}\n`,
    },
    found: ["src/a.ts:2", "src/a.ts:3", "test/a.test.ts:1", "test/a.test.ts:2"],
    fine: {
      "src/a.ts": `// ${"a".repeat(117)}\n`,
      "test/a.test.ts": `test("${"a".repeat(150)}", () => {\n  const text = \`${"b".repeat(150)}\n${"c".repeat(150)}\`;\n});\n`,
    },
  },
  {
    title: `no file of src is longer than ${MAX_FILE_LINES.src} lines`,
    find: longFiles,
    planted: { "src/long.ts": "// line\n".repeat(MAX_FILE_LINES.src + 1) },
    found: ["src/long.ts:401"],
    fine: { "src/full.ts": "// line\n".repeat(MAX_FILE_LINES.src), "test/long.test.ts": "// line\n".repeat(900) },
  },
  {
    title: `no program or test under test is longer than ${MAX_FILE_LINES.test} lines`,
    find: longTests,
    planted: { "test/long.test.ts": "// line\n".repeat(MAX_FILE_LINES.test + 1), "test/long.mjs": "// line\n".repeat(600) },
    found: ["test/long.test.ts:501", "test/long.mjs:600"],
    fine: { "test/full.test.ts": "// line\n".repeat(MAX_FILE_LINES.test), "test/mcp/package-lock.json": "{\n".repeat(900) },
  },
  {
    title: `no function of src is longer than ${MAX_FUNCTION_LINES} lines`,
    find: longFunctions,
    planted: {
      "src/a.ts": `\n/** Long. */\n${functionOf("function long()", 71)}`,
      "src/b.ts": `class B {\n${functionOf("get b()", 71)}${functionOf("constructor()", 71)}}\nconst f = ${functionOf("() =>", 71)}`,
    },
    found: ["src/a.ts:3", "src/b.ts:2", "src/b.ts:73", "src/b.ts:145"],
    fine: { "src/a.ts": `/**\n${" * Doc.\n".repeat(30)} */\n${functionOf("function full()", 70)}` },
  },
  {
    title: `half of the functions of src have at most ${MAX_MEDIAN_LINES} lines`,
    find: longMedian,
    planted: { "src/a.ts": functionOf("function a()", 13) + functionOf("function b()", 20) + functionOf("function c()", 1) },
    found: ["src/"],
    fine: { "src/a.ts": functionOf("function a()", 12) + functionOf("function b()", 60) + functionOf("function c()", 3) },
  },
];

/** A function of `lines` lines, for the examples. */
function functionOf(head: string, lines: number): string {
  return lines === 1 ? `${head} {}\n` : `${head} {\n${"  // line\n".repeat(lines - 2)}}\n`;
}

function longLines(tree: Tree): Offence[] {
  const files = tree.filter(({ path }) => /^(src|test)\/.*\.ts$/.test(path));
  return files.flatMap((file) => {
    const isTest = file.path.startsWith("test/");
    const most = isTest ? MAX_COLUMNS.test : MAX_COLUMNS.src;
    const long = file.text.split("\n").flatMap((line, at) => ([...line].length > most ? [at + 1] : []));
    if (long.length === 0) return [];
    const literal = isTest ? linesOfLongLiterals(file) : new Set<number>();
    return long
      .filter((line) => !literal.has(line))
      .map((line) => ({ at: `${file.path}:${line}`, says: `is longer than ${most} columns` }));
  });
}

/** The lines on which a literal is long: to break it would not help its reader. */
function linesOfLongLiterals(file: TreeFile): Set<number> {
  const lines = new Set<number>();
  for (const node of nodesIn(syntaxOf(file))) {
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateExpression(node) && !ts.isRegularExpressionLiteral(node)) continue;
    const first = lineOf(node);
    for (const [at, part] of node.getText().split("\n").entries()) if (part.length > MIN_LONG_LITERAL) lines.add(first + at);
  }
  return lines;
}

function longFiles(tree: Tree): Offence[] {
  return longerThan(MAX_FILE_LINES.src, sources(tree), "find the second noun in it and give it a file");
}

function longTests(tree: Tree): Offence[] {
  const programs = tree.filter(({ path }) => /^test\/.*\.m?[jt]s$/.test(path));
  return longerThan(MAX_FILE_LINES.test, programs, "give a theme of it a file, a.test.ts and a-theme.test.ts");
}

function longerThan(most: number, files: Tree, advice: string): Offence[] {
  return files.flatMap((file) => {
    const lines = file.text.replace(/\n$/, "").split("\n").length;
    return lines <= most ? [] : [{ at: `${file.path}:${lines}`, says: `has ${lines} lines; at most ${most}: ${advice}` }];
  });
}

interface Measured {
  readonly at: string;
  readonly name: string;
  readonly lines: number;
}

function functionsOf(tree: Tree): Measured[] {
  return sources(tree).flatMap((file) =>
    [...nodesIn(syntaxOf(file))]
      .filter(isFunctionWithBody)
      .map((node) => ({ at: `${file.path}:${lineOf(node)}`, name: nameOf(node), lines: lastLineOf(node) - lineOf(node) + 1 })),
  );
}

function isFunctionWithBody(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return ts.isFunctionLike(node) && "body" in node && node.body !== undefined;
}

function nameOf(node: ts.FunctionLikeDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return "the constructor";
  const name = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
  return name === undefined ? "a function" : `\`${name.getText()}\``;
}

function longFunctions(tree: Tree): Offence[] {
  return functionsOf(tree)
    .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
    .map(({ at, name, lines }) => ({ at, says: `${name} has ${lines} lines; at most ${MAX_FUNCTION_LINES}: give each step of it a name` }));
}

function longMedian(tree: Tree): Offence[] {
  const byLength = functionsOf(tree).sort((a, b) => b.lines - a.lines);
  const median = byLength[Math.floor(byLength.length / 2)]?.lines ?? 0;
  if (median <= MAX_MEDIAN_LINES) return [];
  const longest = byLength.slice(0, 10).map(({ at, name, lines }) => `${name} ${at} (${lines})`);
  return [{ at: "src/", says: `the median function has ${median} lines; at most ${MAX_MEDIAN_LINES}. The longest: ${longest.join(", ")}` }];
}
