import ts from "typescript";
import { importsOf, judgeNodes } from "./syntax.js";
import type { Check, Offence, Tree } from "./tree.js";

/** The measure of how tests wait. */
export const WAIT_CHECKS: readonly Check[] = [
  {
    title: "no test sleeps",
    find: sleeps,
    planted: {
      "test/a.test.ts":
        'import { setTimeout as sleep } from "node:timers/promises";\nawait new Promise((resolve) => setTimeout(resolve, 50));\nawait new Promise<void>((go) => { setTimeout(() => go(), 50); });\nconst nap = promisify(setTimeout);\nawait new Promise((ok) => globalThis.setTimeout(function () { ok(1); }, 5));\nAtomics.wait(a, 0, 0, 50);\n',
    },
    found: [1, 2, 3, 4, 5, 6].map((line) => `test/a.test.ts:${line}`),
    fine: {
      "test/a.test.ts":
        'import { once } from "node:events";\nconst text = "setTimeout(resolve, 50)";\nawait new Promise((resolve, reject) => {\n  server.once("listening", resolve);\n  setTimeout(() => reject(new Error("not listening after 5 s")), 5000).unref();\n});\nclock.after(50, () => resolve());\n',
      "test/bench/run.ts": "await new Promise((resolve) => setTimeout(resolve, 50));\n",
    },
  },
];

function sleeps(tree: Tree): Offence[] {
  const tests = tree.filter((file) => /^test\/.*\.ts$/.test(file.path) && !file.path.startsWith("test/bench/"));
  const imported = tests.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => /^(node:)?timers\/promises$/.test(specifier))
      .map(({ line }) => ({
        at: `${file.path}:${line}`,
        says: "imports timers/promises; wait for the event, or turn the test's own clock",
      })),
  );
  return [...imported, ...judgeNodes(tests, (node) => (isSleep(node) ? "sleeps; wait for the event, or turn the test's own clock" : null))];
}

function isSleep(node: ts.Node): boolean {
  if (!ts.isCallExpression(node)) return false;
  const callee = node.expression.getText();
  if (callee === "Atomics.wait" || /(^|\.)promisify$/.test(callee))
    return callee === "Atomics.wait" || node.arguments[0]?.getText() === "setTimeout";
  const then = node.arguments[0];
  if (!/(^|\.)setTimeout$/.test(callee) || then === undefined) return false;
  const resolve = nearestResolver(node);
  return resolve !== null && (then.getText() === resolve || onlyCalls(then, resolve));
}

/** What the function handed to the `new Promise` around `node` calls its first parameter. */
function nearestResolver(node: ts.Node): string | null {
  for (let at = node.parent; at !== undefined; at = at.parent) {
    if (!ts.isNewExpression(at) || at.expression.getText() !== "Promise") continue;
    const executor = at.arguments?.[0];
    if (executor !== undefined && (ts.isArrowFunction(executor) || ts.isFunctionExpression(executor)))
      return executor.parameters[0]?.name.getText() ?? null;
  }
  return null;
}

function onlyCalls(callback: ts.Node, name: string): boolean {
  if (!ts.isArrowFunction(callback) && !ts.isFunctionExpression(callback)) return false;
  const [only, ...more] = ts.isBlock(callback.body) ? callback.body.statements : [callback.body];
  if (only === undefined || more.length > 0) return false;
  const call = ts.isExpressionStatement(only) ? only.expression : only;
  return ts.isCallExpression(call) && call.expression.getText() === name;
}
