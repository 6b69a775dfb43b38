import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import type { RepairLine } from "../../../../src/storage/file/offline/repair-steps.js";
import { closedDirectory, closedFamily } from "../../../helpers/closed-directory.js";
import { repairSteps } from "../../../helpers/repair-steps.js";

describe("a step of a repair", () => {
  for (const apply of [true, false]) {
    test(`is ${apply ? "done and said" : "only said"}, and counted`, async () => {
      const lines: RepairLine[] = [];
      const steps = repairSteps({ apply, say: (line) => lines.push(line) });
      let isDone = false;
      await steps.take("s", "/data/file", "set it aside", async () => (isDone = true));
      steps.leave(null, "/data/other", "it is missing");
      assert.equal(isDone, apply);
      const kind = apply ? "done" : "to do";
      assert.deepEqual(lines, [
        { kind, stream: "s", file: "/data/file", what: "set it aside" },
        { kind: "left", stream: null, file: "/data/other", what: "it is missing" },
      ]);
      assert.deepEqual(steps.summary, { done: apply ? 1 : 0, toDo: apply ? 0 : 1, left: 1 });
    });
  }

  test("finds all streams, whatever else lies beside their directories", async () => {
    const directory = await openOffline((await closedFamily()).dir, false);
    writeFileSync(`${directory.layout.streams}/note`, "not a directory of streams");
    const names: string[] = [];
    for await (const { name } of repairSteps(directory).streams()) names.push(String(name));
    assert.deepEqual(names.sort(), ["leaf", "left", "source"]);
  });

  test("that replaces a sidecar keeps what was there", async () => {
    const directory = await openOffline(await closedDirectory(), false);
    const steps = repairSteps(directory);
    const path = directory.layout.streamDirectory("a/b");
    const checked = await steps.checkSegments(path, 0);
    await steps.replaceSidecar(checked, Buffer.from("another"));
    const copies: Buffer[] = [];
    for await (const copy of steps.quarantine.copiesOf(sidecarPath(path))) copies.push(copy);
    assert.deepEqual(copies, [checked.sidecarBytes]);
    assert.equal((await steps.checkSegments(path, 0)).sidecarState, "damaged");
  });
});
