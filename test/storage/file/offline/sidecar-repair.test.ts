import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { encodeRefusal } from "../../../../src/storage/file/format/sidecar.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { repairSidecars } from "../../../../src/storage/file/offline/sidecar-repair.js";
import { ForkRelations } from "../../../../src/storage/file/survey/fork-relations.js";
import { surveyJournal } from "../../../../src/storage/file/survey/journal-survey.js";
import { StreamFactFinder } from "../../../../src/storage/file/survey/stream-facts.js";
import { closedFamily } from "../../../helpers/closed-directory.js";
import { repairSteps } from "../../../helpers/repair-steps.js";
import { flipBit } from "../../../helpers/spoilt-files.js";

/** Repairs the sidecars of these streams after `harm`; what was said, and what could not be done. */
async function repaired(names: readonly string[], harm: (path: string) => void, apply = true): Promise<{ said: string[]; left: string[] }> {
  const directory = await openOffline((await closedFamily()).dir, false);
  const { layout } = directory;
  for (const name of names) harm(sidecarPath(layout.streamDirectory(name)));
  const said: string[] = [];
  const steps = repairSteps({
    ...directory,
    apply,
    say: ({ stream, what }) => said.push(`${stream}: ${what.replace(/byte \d+/, "a byte")}`),
  });
  const survey = await surveyJournal(directory);
  const facts = new StreamFactFinder(directory, survey);
  const lost = names.map((name) => layout.streamDirectory(name));
  const left = await repairSidecars(steps, { facts, relations: new ForkRelations(layout), lost }, survey);
  assert.equal(steps.planned.size, apply ? 0 : said.length);
  return { said, left: left.map(({ checked, problem }) => `${checked.name}: ${problem}`) };
}

const MENDED = "put a byte right, the only one whose change makes the checksum match; the damaged file is kept";

describe("a lost sidecar", () => {
  for (const apply of [true, false]) {
    test(`with one wrong byte is ${apply ? "put" : "to be put"} back as it was`, async () => {
      const harm = (path: string): void => flipBit(path, readFileSync(path).indexOf("contentType"));
      const { said, left } = await repaired(["source", "leaf"], harm, apply);
      assert.deepEqual([said, left], [[`source: ${MENDED}`, `leaf: ${MENDED}`], []]);
    });
  }

  test("is left as it is where a repair has refused the stream", async () => {
    const { said, left } = await repaired(["left"], (path) => writeFileSync(path, encodeRefusal("its end is lost")));
    assert.deepEqual([said, left], [[], ["left: its end is lost"]]);
  });
});
