import ts from "typescript";
import { commentLinesOf, commentsOf, judgeNodes, lastLineOf, lineOf, syntaxOf } from "./syntax.js";
import { sources, type Check, type Offence, type Tree, type TreeFile } from "./tree.js";

const HEAD_WRITER = "src/http/answer/respond.ts";
/** The lines that it puts together. */
const HEAD_LINES = "src/http/encoding/head.ts";
const HEAD_CALLS = new Set([
  "writeHead",
  "setHeader",
  "setHeaders",
  "appendHeader",
  "removeHeader",
  "flushHeaders",
  "writeContinue",
  "writeProcessing",
  "writeEarlyHints",
]);

/** The measures of how TypeScript is written here. */
export const LANGUAGE_CHECKS: readonly Check[] = [
  {
    title: "src has no any",
    find: (tree) =>
      judgeNodes(sources(tree), (node) =>
        node.kind === ts.SyntaxKind.AnyKeyword ? "says any; say unknown and narrow it, or give the type" : null,
      ),
    planted: { "src/a.ts": "const a: any = 1;\nfunction f(b: Map<string, any[]>) {}\n" },
    found: ["src/a.ts:1", "src/a.ts:2"],
    fine: { "src/a.ts": 'const any = "any"; // any\nconst b = any;\n', "test/a.test.ts": "let a: any;\n" },
  },
  {
    title: "src has no non-null !",
    find: (tree) =>
      judgeNodes(sources(tree), (node) =>
        isNonNull(node) ? "says ! to the compiler; check for undefined, or build it so that it can't be" : null,
      ),
    planted: { "src/a.ts": "const a = b!;\nb!.c();\nclass D { e!: string; }\n" },
    found: ["src/a.ts:1", "src/a.ts:2", "src/a.ts:3"],
    fine: { "src/a.ts": 'const a = !b && b !== c;\nconst d = "b!";\n' },
  },
  {
    title: "every cast of src has its reason beside it",
    find: castsWithoutReason,
    planted: { "src/a.ts": "const a = b as C;\n\nf(\n  <D>e,\n);\n// Not beside it.\n\nconst g = h as unknown as I;\n" },
    found: ["src/a.ts:1", "src/a.ts:4", "src/a.ts:8"],
    fine: {
      "src/a.ts":
        'const a = b as C; // b comes from c()\n// Only d() makes these.\nconst e = f as unknown as G;\nconst h = [1] as const;\nconst i = {} satisfies J;\nimport { k as l } from "./k.js";\nf([\n  m as N, // last\n  // and the next\n  o as P,\n]);\n',
    },
  },
  {
    title: "src swallows no error without a word",
    find: emptyCatches,
    planted: { "src/a.ts": "try { a(); } catch {}\n\ntry {\n} catch (e) {\n}\np.catch(() => {});\np.then(f, g).catch(() => undefined);\n" },
    found: ["src/a.ts:1", "src/a.ts:4", "src/a.ts:6", "src/a.ts:7"],
    fine: {
      "src/a.ts":
        "try { a(); } catch { b(); }\ntry { a(); } catch { /* gone already */ }\np.catch(() => {\n  // c tells of it\n});\np.catch(report);\n// Whoever asked is told.\np = p.catch(() => undefined);\n",
    },
  },
  {
    title: "src silences no checker",
    find: silencers,
    planted: { "src/a.ts": "// @ts-ignore\n/* eslint-disable */\na(); // @ts-expect-error later\n// @ts-nocheck\n" },
    found: ["src/a.ts:1", "src/a.ts:2", "src/a.ts:3", "src/a.ts:4"],
    fine: { "src/a.ts": 'const a = "@ts-ignore";\n', "test/a.test.ts": "// @ts-expect-error the test is that it is refused\n" },
  },
  {
    title: "every export of src has a JSDoc",
    find: undocumented,
    planted: {
      "src/a.ts":
        "export const a = 1;\nexport class B {}\n\n// Not a JSDoc.\nexport function c() {}\nexport default d;\nexport interface E {}\nexport type F = 1;\n/** */\nexport enum G {}\nfunction h() {}\nexport { h };\n",
    },
    found: ["src/a.ts:1", "src/a.ts:2", "src/a.ts:5", "src/a.ts:6", "src/a.ts:7", "src/a.ts:8", "src/a.ts:10", "src/a.ts:12"],
    fine: {
      "src/a.ts":
        '/** A. */\nexport const a = 1;\nexport { b } from "./b.js";\nexport * from "./c.js";\nfunction d() {}\n/** E. */\nfunction e() {}\nexport { e };\n/** F. */\nexport function f(): void;\nexport function f(x?: string) {}\n',
    },
  },
  {
    title: "only http/answer/respond.ts writes a head",
    find: heads,
    planted: {
      "src/http/sse.ts":
        'res.writeHead(200);\nres.setHeader("a", "b");\nres?.writeContinue();\nres.statusCode = 400;\nsocket.end("HTTP/1.1 400 Bad Request\\r\\n\\r\\n");\nsocket.end(`HTTP/1.1 ${status} No\\r\\n`);\nconnection.answer(this, `HTTP/1.1 200 OK\\r\\n`);\n',
    },
    found: [1, 2, 3, 4, 5, 6, 7].map((line) => `src/http/sse.ts:${line}`),
    fine: {
      [HEAD_WRITER]: "res.writeHead(200);\n",
      [HEAD_LINES]: "return `HTTP/1.1 ${status} No\\r\\n`;\n",
      "src/http/context/body.ts": "// writeHead\nif (res.statusCode === 400) respond(res, 'HTTP/1.1 needs a Host.');\n",
      "test/a.test.ts": "res.writeHead(200);\n",
    },
  },
];

function isNonNull(node: ts.Node): boolean {
  return (
    ts.isNonNullExpression(node) ||
    ((ts.isPropertyDeclaration(node) || ts.isVariableDeclaration(node)) && node.exclamationToken !== undefined)
  );
}

function castsWithoutReason(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) => {
    const commented = commentLinesOf(file);
    return judgeNodes([file], (node) => {
      if (!isCast(node) || isCast(node.parent)) return null;
      const beside = [lineOf(node) - 1, lineOf(node), lineOf(node.type) - 1, lastLineOf(node)];
      return beside.some((line) => commented.has(line))
        ? null
        : `casts to ${node.type.getText()}; narrow it, or say on this line or the one above why it holds`;
    });
  });
}

function isCast(node: ts.Node): node is ts.AssertionExpression {
  return ts.isAssertionExpression(node) && !ts.isConstTypeReference(node.type);
}

function emptyCatches(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) => {
    const comments = commentLinesOf(file);
    return judgeNodes([file], (node) => {
      const body = swallower(node);
      if (body === null) return null;
      const first = ts.isCatchClause(node) ? lineOf(body) : lineOf(body) - 1;
      for (let line = first; line <= lastLineOf(body); line++) if (comments.has(line)) return null;
      return "swallows an error; handle it, or say in a comment why nothing is to be done";
    });
  });
}

/** The body of a catch block or a `.catch(() => ...)` that does nothing. */
function swallower(node: ts.Node): ts.Node | null {
  if (ts.isCatchClause(node)) return node.block.statements.length === 0 ? node.block : null;
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression) || node.expression.name.text !== "catch") return null;
  const handler = node.arguments[0];
  if (handler === undefined || !(ts.isArrowFunction(handler) || ts.isFunctionExpression(handler))) return null;
  if (ts.isBlock(handler.body)) return handler.body.statements.length === 0 ? handler.body : null;
  return /^(undefined|void 0|null)$/.test(handler.body.getText()) ? handler.body : null;
}

function silencers(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) =>
    commentsOf(file)
      .filter(({ text }) => /eslint-disable|@ts-(ignore|expect-error|nocheck)/.test(text))
      .map(({ firstLine, text }) => ({
        at: `${file.path}:${firstLine}`,
        says: `silences a checker (${text.slice(0, 40)}); write what it accepts`,
      })),
  );
}

function undocumented(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) => {
    const offences: Offence[] = [];
    const overloaded = new Set<string>();
    for (const statement of syntaxOf(file).statements) {
      const name = exportedName(statement);
      if (name === null) continue;
      if (!isDocumented(statement, file) && !overloaded.has(name)) {
        offences.push({
          at: `${file.path}:${lineOf(statement)}`,
          says: `exports ${name} without a JSDoc; give its shape, units, bounds and what it throws`,
        });
      }
      if (ts.isFunctionDeclaration(statement)) overloaded.add(name);
    }
    return offences;
  });
}

/** What a statement exports from its own file; `null` when nothing. */
function exportedName(statement: ts.Statement): string | null {
  if (ts.isExportAssignment(statement)) return "its default";
  if (ts.isExportDeclaration(statement))
    return statement.moduleSpecifier === undefined ? (statement.exportClause?.getText() ?? null) : null;
  const exported = ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  if (exported !== true) return null;
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText()).join(", ");
  return ts.isDeclarationStatement(statement) ? (statement.name?.getText() ?? "its default") : null;
}

function isDocumented(statement: ts.Statement, file: TreeFile): boolean {
  if (hasJsDoc(statement)) return true;
  if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause))
    return false;
  const names = statement.exportClause.elements.map((element) => (element.propertyName ?? element.name).text);
  return names.every((name) => syntaxOf(file).statements.some((other) => declares(other, name) && hasJsDoc(other)));
}

function declares(statement: ts.Statement, name: string): boolean {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.some((declaration) => declaration.name.getText() === name);
  return ts.isDeclarationStatement(statement) && statement.name?.getText() === name;
}

function hasJsDoc(statement: ts.Statement): boolean {
  return ts.getJSDocCommentsAndTags(statement).some((doc) => /[^\s/*]/.test(doc.getText()));
}

function heads(tree: Tree): Offence[] {
  const others = sources(tree).filter((file) => file.path !== HEAD_WRITER && file.path !== HEAD_LINES);
  return judgeNodes(others, (node) => {
    const what = headWrite(node);
    return what === null ? null : `${what}; every answer leaves through ${HEAD_WRITER}: ask it`;
  });
}

function headWrite(node: ts.Node): string | null {
  if (ts.isPropertyAccessExpression(node) && HEAD_CALLS.has(node.name.text)) return `calls ${node.name.text}`;
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
    return /\.status(Code|Message)$/.test(node.left.getText()) ? `sets ${node.left.getText()}` : null;
  }
  const text = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) ? node.text : "";
  return /^HTTP\/1\.[01] (\d|$)/.test(text) ? "writes a status line" : null;
}
