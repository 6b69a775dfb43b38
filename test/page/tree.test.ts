import assert from "node:assert/strict";
import { test } from "node:test";
import { listQueryOf, treeOf } from "../../src/page/tree.js";

interface Shown {
  readonly [label: string]: Shown | true;
}

function shown(names: readonly string[]): unknown {
  type Node = ReturnType<typeof treeOf<{ name: string }>>[number];
  const show = (nodes: readonly Node[]): Shown =>
    Object.fromEntries(
      nodes.map(({ label, item, children }) => [`${label}${item === null ? "" : "*"}`, children.length === 0 || show(children)]),
    );
  return show(treeOf(names.map((name) => ({ name }))));
}

test("names become a tree by their slashes; folders with nothing but one other are one", () => {
  assert.deepEqual(shown([]), {});
  assert.deepEqual(shown(["a", "b"]), { "a*": true, "b*": true });
  assert.deepEqual(shown(["a", "a/b", "a/c"]), { "a*": { "b*": true, "c*": true } });
  assert.deepEqual(shown(["x/y/z"]), { "x/y/z*": true });
  assert.deepEqual(shown(["x/y/1", "x/y/2"]), { "x/y": { "1*": true, "2*": true } });
  assert.deepEqual(shown(["__proto__/a", "constructor"]), { "__proto__/a*": true, "constructor*": true });
});

test("what is typed becomes a query of the list", () => {
  for (const [typed, query] of [
    ["", {}],
    ["  ", {}],
    ["log", { match: "**/*log*/**" }],
    ["jobs/1", { prefix: "jobs/1" }],
    ["jobs/*", { match: "jobs/*" }],
  ] as const)
    assert.deepEqual(listQueryOf(typed), query);
});
