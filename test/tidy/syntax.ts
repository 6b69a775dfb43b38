import ts from "typescript";
import type { Offence, Tree, TreeFile } from "./tree.js";

const parsed = new WeakMap<TreeFile, ts.SourceFile>();

/** The syntax of a file, parsed once. */
export function syntaxOf(file: TreeFile): ts.SourceFile {
  const known = parsed.get(file);
  if (known !== undefined) return known;
  const syntax = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.ES2023, true);
  parsed.set(file, syntax);
  return syntax;
}

/** The line of `node`'s first character, counted from 1; its JSDoc does not count. */
export function lineOf(node: ts.Node): number {
  const syntax = node.getSourceFile();
  return syntax.getLineAndCharacterOfPosition(node.getStart(syntax)).line + 1;
}

/** The line of `node`'s last character, counted from 1. */
export function lastLineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getEnd()).line + 1;
}

/** `node` and all below it. */
export function* nodesIn(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesIn(child);
}

/** An offence for each node of `files` of which `judge` has something to say. */
export function judgeNodes(files: Tree, judge: (node: ts.Node) => string | null): Offence[] {
  const offences: Offence[] = [];
  for (const file of files) {
    for (const node of nodesIn(syntaxOf(file))) {
      const says = judge(node);
      if (says !== null) offences.push({ at: `${file.path}:${lineOf(node)}`, says });
    }
  }
  return offences;
}

/** A comment's text and the lines it covers, counted from 1. */
export interface Comment {
  readonly text: string;
  readonly firstLine: number;
  readonly lastLine: number;
}

/** Every comment of a file; text within strings and templates is none. */
export function commentsOf(file: TreeFile): Comment[] {
  const syntax = syntaxOf(file);
  const byPlace = new Map<number, Comment>();
  const note = (range: ts.CommentRange) => {
    const firstLine = syntax.getLineAndCharacterOfPosition(range.pos).line + 1;
    const lastLine = syntax.getLineAndCharacterOfPosition(range.end).line + 1;
    byPlace.set(range.pos, { text: file.text.slice(range.pos, range.end), firstLine, lastLine });
  };
  const visit = (node: ts.Node) => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(syntax);
    if (children.length > 0) return children.forEach(visit);
    const start = node.getFullStart();
    for (const range of ts.getTrailingCommentRanges(file.text, start) ?? []) note(range);
    for (const range of ts.getLeadingCommentRanges(file.text, start) ?? []) note(range);
  };
  visit(syntax);
  return [...byPlace.values()];
}

/** The lines of a file that a comment covers. */
export function commentLinesOf(file: TreeFile): Set<number> {
  const lines = new Set<number>();
  for (const { firstLine, lastLine } of commentsOf(file)) {
    for (let line = firstLine; line <= lastLine; line++) lines.add(line);
  }
  return lines;
}

/** What a file imports or re-exports, types too: the specifier as written, and its line. */
export function importsOf(file: TreeFile): { specifier: string; line: number }[] {
  const imports: { specifier: string; line: number }[] = [];
  for (const node of nodesIn(syntaxOf(file))) {
    const literal = specifierIn(node);
    if (literal !== undefined && ts.isStringLiteralLike(literal)) imports.push({ specifier: literal.text, line: lineOf(literal) });
  }
  return imports;
}

function specifierIn(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node)) return ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return node.arguments[0];
  return undefined;
}

/** Whether a file holds nothing that runs: only types, and imports and exports of types. */
export function holdsOnlyTypes(file: TreeFile): boolean {
  return syntaxOf(file).statements.every(isOfTypes);
}

/** Whether a file holds nothing of its own that runs: only types, imports and what it hands on from other files. */
export function holdsNoCode(file: TreeFile): boolean {
  return syntaxOf(file).statements.every((statement) => isOfTypes(statement) || handsOn(statement));
}

function handsOn(statement: ts.Statement): boolean {
  return ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined;
}

function isOfTypes(statement: ts.Statement): boolean {
  if (ts.isImportDeclaration(statement)) return statement.importClause?.isTypeOnly === true;
  if (ts.isExportDeclaration(statement)) return statement.isTypeOnly;
  return ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
}
