import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import ts from "typescript";
import { fileURLToPath } from "node:url";
import { formatValue, OPTIONS, type OptionSpec } from "../../src/options.js";

const PATH = new URL("../../src/options/settings.ts", import.meta.url);
const HEAD = `// What editors show of the options, made from their table: UPDATE_DOCS=1 npx tsx test/docs/settings.test.ts

/** All settings of a server, complete. Sizes in bytes, durations in milliseconds. */
export type Settings = {
`;

function typeOf({ choices, undecided, default: value }: OptionSpec): string {
  if (undecided !== undefined) return `boolean | "${undecided}"`;
  return choices === undefined ? typeof value : choices.map((choice) => `"${choice}"`).join(" | ");
}

/** How long, how large, and what is taken when nothing is given. */
function factsOf(spec: OptionSpec): string {
  const { kind, default: value, min, max, canBeOff } = spec;
  const unit = kind === "duration" ? "Milliseconds" : kind === "bytes" ? "Bytes" : "A number";
  const off = canBeOff === true ? ", or `Infinity`" : "";
  const bounds = min === undefined || max === undefined ? "" : `${unit} from ${min} to ${max}${off}. `;
  const written = formatValue(spec, value);
  const meant = typeof value === "number" && value !== Infinity && written !== String(value) ? ` (${written})` : "";
  return `${bounds}Default: \`${typeof value === "string" ? `"${value}"` : value}\`${meant}.`;
}

function settings(): string {
  const specs: readonly (readonly [string, OptionSpec])[] = Object.entries(OPTIONS);
  const members = specs.map(([name, spec]) => {
    const help = `${spec.help[0]?.toUpperCase()}${spec.help.slice(1)}.`;
    return `  /**\n   * ${help}\n   *\n   * ${factsOf(spec)}\n   */\n  readonly ${name}: ${typeOf(spec)};\n`;
  });
  return `${HEAD}${members.join("")}};\n`;
}

test("src/options/settings.ts is made from the table of options", () => {
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(PATH, settings());
  assert.equal(readFileSync(PATH, "utf8"), settings(), "UPDATE_DOCS=1 writes it anew");
});

test("an editor shows what each option of createServer is for", () => {
  const file = fileURLToPath(new URL("../../src/server/server-options.ts", import.meta.url));
  const program = ts.createProgram([file], { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, noEmit: true });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const found = source?.statements.find((node) => ts.isInterfaceDeclaration(node) && node.name.text === "ServerOptions");
  assert.ok(found !== undefined);
  const silent = checker
    .getTypeAtLocation(found)
    .getProperties()
    .filter((property) => ts.displayPartsToString(property.getDocumentationComment(checker)) === "")
    .map(({ name }) => name);
  assert.deepEqual(silent, []);
});
