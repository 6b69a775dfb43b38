import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { boundHeapGrowth } from "../../src/cli/heap.js";
import { startNode } from "../helpers/process.js";

describe("the growth of the heap is bounded", () => {
  const cases: readonly (readonly [execArgv: readonly string[], flags: readonly string[]])[] = [
    [[], ["--heap-growing-percent=30"]],
    [["--max-semi-space-size=8", "--enable-source-maps"], ["--heap-growing-percent=30"]],
    [["--heap-growing-percent=100"], []],
    [["--max-semi-space-size=8", "--heap_growing_percent=0"], []],
  ];
  for (const [execArgv, expected] of cases) {
    test(`of a Node with ${execArgv.join(" ") || "no flags"}`, () => {
      const flags: string[] = [];
      boundHeapGrowth(execArgv, (flag) => void flags.push(flag));
      assert.deepEqual(flags, expected);
    });
  }

  test("by a flag that this Node knows", async (t) => {
    // V8 says on standard error what it does not know.
    const known = startNode(t, ["-e", 'require("node:v8").setFlagsFromString("--heap-growing-percent=30")']).ended;
    const unknown = startNode(t, ["-e", 'require("node:v8").setFlagsFromString("--heap-growing-nonsense=30")']).ended;
    assert.equal((await known).stderr, "");
    assert.notEqual((await unknown).stderr, "");
  });
});
