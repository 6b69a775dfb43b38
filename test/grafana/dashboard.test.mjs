import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, test } from "node:test";
import ts from "typescript";

/*
 * Grafana describes its dashboards by types of TypeScript: the compiler holds docs/dashboard.json against them, written
 * out as a constant of that type.
 */

const TEXT = readFileSync(new URL("../../docs/dashboard.json", import.meta.url), "utf8");
/** Where the constant would be: the types are found from there. */
const FILE = fileURLToPath(new URL("dashboard.ts", import.meta.url));

/** What the compiler says of a dashboard, a line for each fault. */
function faultsOf(text) {
  const source = `import type { Dashboard } from "@grafana/schema";\nexport const dashboard: Dashboard = ${text};\n`;
  const { Node16 } = ts.ModuleKind;
  const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], module: Node16, target: ts.ScriptTarget.ES2022 };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => path === FILE || fileExists(path);
  host.readFile = (path) => (path === FILE ? source : readFile(path));
  host.getSourceFile = (path, languageVersion, ...more) =>
    path === FILE ? ts.createSourceFile(path, source, languageVersion) : getSourceFile(path, languageVersion, ...more);
  const program = ts.createProgram([FILE], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

describe("docs/dashboard.json", () => {
  test("is a dashboard by Grafana's own types", () => assert.deepEqual(faultsOf(TEXT), []));

  for (const [member, wrong] of [
    ["schemaVersion", "39"],
    ["panels", [{ type: 5, title: "a panel", targets: [] }]],
    ["templating", { list: [{ name: "datasource", type: "no such type" }] }],
    ["notOfGrafana", true],
  ])
    test(`would not be one with ${member}: ${JSON.stringify(wrong)}`, () =>
      assert.equal(faultsOf(JSON.stringify({ ...JSON.parse(TEXT), [member]: wrong })).length, 1));
});
