import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ForkRelations } from "../../../../src/storage/file/survey/fork-relations.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { relativesOf, type Relatives } from "../../../../src/storage/file/offline/relatives.js";
import type { CheckedStream } from "../../../../src/storage/file/survey/stream-check.js";
import type { StreamFacts } from "../../../../src/storage/file/survey/stream-facts.js";

const [S, F, G] = ["a".repeat(24), "b".repeat(24), "c".repeat(24)];
const origin = (id: string, point: number): StreamFacts["forkedFrom"] => ({
  name: "lost",
  id,
  point,
  earliest: { position: 0, segmentStart: 0 },
  offset: null,
  subOffset: 0,
});

function facts(more: Partial<StreamFacts>): StreamFacts {
  return { id: S, name: "source", forkedFrom: null, earliest: 3, tail: 100, forks: new Map(), ...more };
}

function relatives(streams: readonly StreamFacts[], starts: readonly number[], { isOnlyLost = true, id = "" } = {}): Relatives | string {
  const relations = new ForkRelations(new Layout("/data"));
  for (const stream of streams) relations.note(stream);
  const sidecarBytes = id === "" ? null : Buffer.from(`{\n"id": "${id}",\n`);
  const checked: CheckedStream = {
    directory: "/data",
    name: "lost",
    sidecar: null,
    sidecarProblem: "",
    sidecarState: "damaged",
    sidecarBytes,
    refusal: null,
    accepted: [],
    starts,
    lost: [],
    lostIndexes: [],
    findings: [],
  };
  return relativesOf(relations, isOnlyLost, checked, undefined);
}

const ALONE = { id: null, forkedFrom: null, keepsInherited: false, forks: null, lastPoint: 0 };
const FOUND = {
  ...ALONE,
  id: F,
  forkedFrom: { name: "source", id: S, point: 10, earliest: { position: 3, segmentStart: 3 }, offset: null, subOffset: 0 },
  keepsInherited: true,
};

describe("the relatives of a stream whose sidecar is lost", () => {
  const source = facts({ forks: new Map([[F, 10]]) });

  test("are none where nobody names it", () => {
    assert.deepEqual(relatives([], [0]), ALONE);
    assert.deepEqual(relatives([], [0], { id: G }), ALONE);
    assert.deepEqual(relatives([source], [0]), ALONE);
  });

  test("are found by the id that is left of its sidecar", () => {
    assert.deepEqual(relatives([source], [], { id: F, isOnlyLost: false }), FOUND);
    const weaned = facts({ forks: new Map([[F, 0]]) });
    assert.deepEqual(relatives([weaned], [20], { id: F }), { ...ALONE, id: F });
  });

  test("are found by the place where its own bytes begin, if only one can be meant", () => {
    assert.deepEqual(relatives([source], [10]), FOUND);
    assert.match(String(relatives([source], [10], { isOnlyLost: false })), /it may be a fork of "source"/);
    assert.match(String(relatives([source], [])), /it may be a fork of "source"/);
    assert.match(
      String(
        relatives(
          [
            facts({
              forks: new Map([
                [F, 10],
                [G, 10],
              ]),
            }),
          ],
          [10],
        ),
      ),
      /it may be a fork of "source"/,
    );
    assert.deepEqual(relatives([source], [11]), ALONE);
  });

  test("are its forks, which name its id, unless they disagree", () => {
    const one = facts({ id: F, name: "one", forkedFrom: origin(S, 20) });
    const two = facts({ id: G, name: "two", forkedFrom: origin(S, 30), earliest: 30 });
    assert.deepEqual(relatives([one, two], [0]), {
      ...ALONE,
      id: S,
      forks: new Map([
        [F, 20],
        [G, 0],
      ]),
      lastPoint: 30,
    });
    assert.match(String(relatives([one], [0], { id: G })), /streams were forked from a+ of this name, and nobody can tell/);
    const other = facts({ id: G, name: "two", forkedFrom: origin("d".repeat(24), 30) });
    assert.match(String(relatives([one, other], [0])), /streams were forked from a+ and d+ of this name/);
    assert.ok(typeof relatives([one, other], [0], { id: S }) !== "string");
  });
});
