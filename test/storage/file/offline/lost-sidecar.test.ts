import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Survey } from "../../../../src/storage/file/survey/journal-survey.js";
import type { JournaledStream } from "../../../../src/storage/file/survey/journaled-stream.js";
import { isMissed, isStale, isToldOnly, knownOf, problemWithHolder } from "../../../../src/storage/file/offline/lost-sidecar.js";
import type { CheckedStream } from "../../../../src/storage/file/survey/stream-check.js";
import type { Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { MutableState } from "../../../../src/storage/state.js";
import { configOf } from "../../../helpers/engine.js";
import { journaledStream } from "../../../helpers/journaled.js";

const [OLD, NEW] = ["a".repeat(24), "b".repeat(24)];
const SURVEY: Survey = { files: [], damages: [], streams: new Map(), superseded: new Set(), lastBatch: 3, highestBatch: 3, foreign: null };

function journaled(id: string, more: Partial<JournaledStream> = {}): JournaledStream {
  return journaledStream({ id, name: "s", config: configOf() }, "/data", more);
}

function sidecarOf(id: string, claimed: boolean): Sidecar {
  const empty = {
    state: new MutableState(),
    earliest: { position: 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments: [],
    batch: 1,
  };
  return { id, name: "s", config: configOf(), claimed, ...empty };
}

function lost(more: Partial<CheckedStream> = {}): CheckedStream {
  const found = { sidecar: null, sidecarProblem: "", sidecarState: "damaged" as const, sidecarBytes: null, refusal: null };
  return { directory: "/data", name: "s", ...found, accepted: [], starts: [], lost: [], lostIndexes: [], findings: [], ...more };
}

describe("a stream whose sidecar is lost", () => {
  const [older, newer] = [journaled(OLD), journaled(NEW)];

  test("is what the journal knows of it, or what was set aside of the same stream", () => {
    assert.equal(knownOf(lost(), { present: newer, kept: undefined, lastBatch: 3 }), newer);
    assert.equal(knownOf(lost(), { present: newer, kept: older, lastBatch: 3 }), newer);
    const kept = journaled(NEW);
    assert.equal(knownOf(lost(), { present: newer, kept, lastBatch: 3 }), kept);
    assert.equal(
      knownOf(lost({ sidecarBytes: Buffer.from(`"id": "${OLD}",\n`) }), { present: undefined, kept: older, lastBatch: 3 }),
      older,
    );
    assert.equal(
      knownOf(lost({ sidecarBytes: Buffer.from(`"id": "${NEW}",\n`) }), { present: undefined, kept: older, lastBatch: 3 }),
      undefined,
    );
  });

  test("is not taken for another of its name, of which something was set aside", () => {
    assert.equal(knownOf(lost(), { present: undefined, kept: older, lastBatch: 3 }), null);
  });

  test("lacks only records where its directory says so and they can be applied", () => {
    assert.equal(isToldOnly(undefined, SURVEY), false);
    assert.equal(isToldOnly(journaled(OLD, { createdHere: true }), SURVEY), false);
    assert.equal(isToldOnly(journaled(OLD, { createdHere: true, isTold: true }), SURVEY), true);
    assert.equal(isToldOnly(journaled(OLD, { isTold: true }), SURVEY), false);
  });

  test("is missed where it is damaged, or where files are that the journal does not have whole", () => {
    assert.equal(isMissed(lost(), undefined), true);
    const missing = lost({ sidecarState: "missing", starts: [0] });
    assert.equal(isMissed(missing, undefined), true);
    assert.equal(isMissed(missing, journaled(OLD, { createdHere: true })), false);
    assert.equal(isMissed(lost({ sidecarState: "missing" }), undefined), false);
  });

  test("is no stream where its directory is only taken, and the journal has another or none", () => {
    assert.deepEqual(
      [undefined, journaled(OLD), journaled(NEW)].map((known) => isStale(sidecarOf(NEW, true), known)),
      [true, true, false],
    );
    assert.equal(isStale(sidecarOf(NEW, false), undefined), false);
  });

  test("is another's where the journal has one of the name, unless the journal deletes it", () => {
    const held = lost({ sidecar: sidecarOf(OLD, false), sidecarState: "sound" });
    const deleted = { ...SURVEY, streams: new Map([[OLD, journaled(OLD, { deleted: true })]]) };
    assert.match(problemWithHolder(held, newer, SURVEY) ?? "", /it is that of another stream of this name/);
    assert.deepEqual([problemWithHolder(held, older, SURVEY), problemWithHolder(held, newer, deleted)], [null, null]);
  });
});
