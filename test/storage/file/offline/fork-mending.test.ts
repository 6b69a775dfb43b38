import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { mendForks } from "../../../../src/storage/file/offline/fork-mending.js";
import { ForkRelations } from "../../../../src/storage/file/survey/fork-relations.js";
import { surveyJournal } from "../../../../src/storage/file/survey/journal-survey.js";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { decodeSidecar, type Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { checkStream, type CheckedStream } from "../../../../src/storage/file/survey/stream-check.js";
import { StreamFactFinder } from "../../../../src/storage/file/survey/stream-facts.js";
import type { RepairLine } from "../../../../src/storage/file/offline/repair.js";
import { repairSteps } from "../../../helpers/repair-steps.js";
import { closedFamily } from "../../../helpers/closed-directory.js";
import { changeSidecar } from "../../../helpers/engine.js";

interface Mended {
  readonly lines: readonly string[];
  readonly replaced: ReadonlyMap<string, Sidecar>;
}

/** What is done about the forks of a family of which somebody changed the sidecars. */
async function mended(harm: (metaOf: (name: string) => string) => void, apply: boolean): Promise<Mended> {
  const directory = await openOffline((await closedFamily()).dir, false);
  const { layout } = directory;
  harm((name) => sidecarPath(layout.streamDirectory(name)));
  const facts = new StreamFactFinder(directory, await surveyJournal(directory));
  const relations = new ForkRelations(layout);
  for (const name of ["source", "left", "leaf"]) {
    const known = facts.factsIn(layout.streamDirectory(name), (await checkStream(directory, layout.streamDirectory(name))).sidecar);
    if (known !== null) relations.note(known);
  }
  const replaced = new Map<string, Sidecar>();
  const replaceSidecar = async ({ name }: CheckedStream, bytes: Buffer): Promise<void> => {
    const read = decodeSidecar(bytes);
    if (read.kind === "sound") replaced.set(String(name), read.sidecar);
  };
  const lines: string[] = [];
  const say = ({ kind, stream, what }: RepairLine): void =>
    void lines.push(`${stream}: ${kind === "left" ? null : what.slice(0, what.indexOf(":"))}`);
  await mendForks(Object.assign(repairSteps({ ...directory, apply, say }), { replaceSidecar }), facts, relations);
  return { lines, replaced };
}

const forgetLeft = (metaOf: (name: string) => string): void =>
  changeSidecar(metaOf("source"), () => ({ forks: new Map([["0".repeat(24), 5]]) }));

test("a source learns of the fork that names it, and forgets the one that is nowhere", async () => {
  const { lines, replaced } = await mended(forgetLeft, true);
  assert.deepEqual(lines, ["source: put its list of forks right", "source: take a fork off its list"]);
  assert.deepEqual([...(replaced.get("source")?.forks?.values() ?? [])], [4000]);
});

test("nothing is changed where it is only asked for", async () => {
  const { lines, replaced } = await mended(forgetLeft, false);
  assert.deepEqual([lines.length, replaced.size], [2, 0]);
});

test("a source that is missing is for somebody to put back", async () => {
  const { lines } = await mended((metaOf) => rmSync(dirname(metaOf("source")), { recursive: true }), true);
  assert.deepEqual(lines, ["left: null"]);
});
