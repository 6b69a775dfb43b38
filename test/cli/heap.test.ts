import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tuneHeap } from "../../src/cli/heap.js";
import { startNode } from "../helpers/process.js";

const CLUSTER_FLAGS = ["--heap-growing-percent=100", "--no-parallel-scavenge"];

describe("the heap is kept by what fills it", () => {
  for (const [use, execArgv, expected] of [
    ["directory", [], ["--heap-growing-percent=30"]],
    ["directory", ["--max-semi-space-size=8", "--enable-source-maps"], ["--heap-growing-percent=30"]],
    ["directory", ["--heap-growing-percent=100"], []],
    ["directory", ["--max-semi-space-size=8", "--heap_growing_percent=0"], []],
    ["cluster", [], CLUSTER_FLAGS],
    ["cluster", ["--parallel_scavenge"], CLUSTER_FLAGS.slice(0, 1)],
    ["cluster", ["--no-parallel-scavenge", "--heap-growing-percent=50"], []],
  ] as const) {
    test(`a ${use}, in a Node with ${execArgv.join(" ") || "no flags"}`, () => {
      const flags: string[] = [];
      tuneHeap(execArgv, use, (flag) => void flags.push(flag));
      assert.deepEqual(flags, expected);
    });
  }

  test("by flags that this Node knows", async (t) => {
    // V8 says on standard error what it does not know.
    const said = async (flag: string): Promise<string> =>
      (await startNode(t, ["-e", `require("node:v8").setFlagsFromString("${flag}")`]).ended).stderr;
    for (const flag of CLUSTER_FLAGS) assert.equal(await said(flag), "", flag);
    assert.notEqual(await said("--heap-growing-nonsense=30"), "");
  });
});
