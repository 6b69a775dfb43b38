import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const SRC = fileURLToPath(new URL("../../src", import.meta.url));

/** Fewer letters of its own than this, and a text says too little to be looked for. */
const MIN_OWN_CHARS = 10;

/** A part of a text that varies, in a page and in a template. */
const VARIES = "\u2026";

/** All texts of src that a user may be shown, with `…` for what varies. */
export function sourceTexts(): string[] {
  return sourceFiles().flatMap((file) => {
    const texts: string[] = [];
    const visit = (node: ts.Node): void => {
      const text = textOf(node);
      if (text === null) ts.forEachChild(node, visit);
      else {
        texts.push(text);
        // What varies may itself have words.
        ts.forEachChild(node, (child) => ts.forEachChild(child, visit));
      }
    };
    visit(file);
    return texts;
  });
}

/** What src logs as a warning or an error. */
export interface LoggedTexts {
  /** With `…` for what varies. */
  readonly texts: readonly string[];
  /** Those that are made elsewhere: the file, and what stands for the text. */
  readonly elsewhere: readonly string[];
}

/** The texts of all warnings and errors in the log, but for those of the files that `isLeftOut` says. */
export function loggedTexts(isLeftOut: (path: string) => boolean): LoggedTexts {
  const texts: string[] = [];
  const elsewhere: string[] = [];
  for (const file of sourceFiles().filter(({ fileName }) => !isLeftOut(fileName))) {
    const visit = (node: ts.Node): void => {
      const message = ts.isCallExpression(node) && isLogging(node.expression) ? node.arguments[0] : undefined;
      if (message !== undefined) {
        const text = textOf(message);
        if (text === null) elsewhere.push(`${file.fileName}: ${message.getText()}`);
        else texts.push(text);
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return { texts, elsewhere };
}

/** Whether it is `log.warn`, `log.error`, or `log[level]`. */
function isLogging(called: ts.Expression): boolean {
  const isOfLog = (log: ts.Expression): boolean => /(^|[.#])log$/.test(log.getText());
  if (ts.isElementAccessExpression(called)) return isOfLog(called.expression);
  return ts.isPropertyAccessExpression(called) && isOfLog(called.expression) && /^(warn|error)$/.test(called.name.text);
}

function sourceFiles(): ts.SourceFile[] {
  const paths = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  return paths.map((path) => ts.createSourceFile(path, readFileSync(join(SRC, path), "utf8"), ts.ScriptTarget.Latest, true));
}

/** A literal, or several that are put together. */
function textOf(node: ts.Node): string | null {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (ts.isTemplateExpression(node)) return node.head.text + node.templateSpans.map(({ literal }) => VARIES + literal.text).join("");
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return null;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  if (left === null && right === null) return null;
  return (left ?? VARIES) + (right ?? VARIES);
}

/** Whether a source says `quoted`: one text of it, or several one after another; `…` stands for anything. */
export function isSaid(quoted: string, texts: readonly string[]): boolean {
  const pieces = quoted
    .split(VARIES)
    .map((piece) => piece.trim())
    .filter((piece) => piece.length >= MIN_OWN_CHARS);
  return pieces.length > 0 && pieces.every((piece) => texts.some((text) => holds(text, piece)));
}

/** Whether `piece` is in `text`, or is `text` with something for what varies in it. */
function holds(text: string, piece: string): boolean {
  if (text.includes(piece)) return true;
  const own = text.split(VARIES);
  if (own.length === 1 || own.join("").trim().length < MIN_OWN_CHARS) return false;
  return new RegExp(`^${own.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`).test(piece);
}
