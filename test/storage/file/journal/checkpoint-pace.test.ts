import assert from "node:assert/strict";
import { test } from "node:test";
import { CheckpointPace } from "../../../../src/storage/file/journal/checkpoint-pace.js";

type Step = readonly ["done", number | null] | readonly ["allows" | "refuses", filled: number, checkpoints?: number] | readonly ["reset"];

const TABLE: readonly (readonly [string, readonly Step[]])[] = [
  [
    "nobody waits while no checkpoint is under way",
    [
      ["allows", 0],
      ["allows", 1],
    ],
  ],
  [
    "both reach their ends together",
    [
      ["done", 0],
      ["allows", 0],
      ["refuses", 0.1],
      ["done", 0.25],
      ["allows", 0.25],
      ["refuses", 0.26],
      ["done", 1],
      ["allows", 1],
    ],
  ],
  [
    "one that begins in the middle of the file is given the rest of it",
    [
      ["allows", 0.5],
      ["done", 0],
      ["allows", 0.5],
      ["refuses", 0.51],
      ["done", 0.5],
      ["allows", 0.75],
      ["refuses", 0.76],
    ],
  ],
  [
    "one that was half done when the last file began has the whole file before it",
    [
      ["done", 0.5],
      ["allows", 0],
      ["refuses", 0.1],
      ["done", 0.75],
      ["allows", 0.5],
      ["refuses", 0.51],
    ],
  ],
  [
    "one that is all but its end done holds nobody up",
    [
      ["done", 1],
      ["allows", 0.3],
      ["allows", 1],
    ],
  ],
  [
    "one that failed holds nobody up, and its next try begins anew",
    [
      ["done", 0],
      ["allows", 0],
      ["refuses", 0.5],
      ["done", null],
      ["allows", 0.6],
      ["done", 0],
      ["allows", 0.6],
      ["refuses", 0.7],
      ["done", 0.5],
      ["allows", 0.8],
    ],
  ],
  [
    "the first of two takes half of the room, the second the rest",
    [
      ["done", 0],
      ["allows", 0, 2],
      ["done", 0.5],
      ["allows", 0.25, 2],
      ["refuses", 0.26, 2],
      ["done", 1],
      ["allows", 0.5, 2],
      ["refuses", 0.6, 2],
      ["refuses", 0.6],
      ["done", null],
      ["done", 0],
      ["allows", 0.5],
      ["refuses", 0.6],
      ["done", 1],
      ["allows", 1],
    ],
  ],
  [
    "with room for another file it begins anew",
    [["done", 0.5], ["allows", 0.5], ["refuses", 0.6], ["reset"], ["allows", 0.6], ["refuses", 0.7]],
  ],
];

for (const [name, steps] of TABLE) {
  test(`the pace of a checkpoint: ${name}`, () => {
    const pace = new CheckpointPace();
    for (const [index, step] of steps.entries()) {
      if (step[0] === "reset") pace.reset();
      else if (step[0] === "done") pace.checkpointAt(step[1]);
      else assert.equal(pace.allows(step[1], step[2] ?? 1), step[0] === "allows", `step ${index + 1}`);
    }
  });
}
