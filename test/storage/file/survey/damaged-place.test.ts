import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeDamage, mayHaveLost, type DamagedPlace } from "../../../../src/storage/file/survey/damaged-place.js";
import type { JournaledStream } from "../../../../src/storage/file/survey/journaled-stream.js";

function place(more: Partial<DamagedPlace> = {}): DamagedPlace {
  return {
    file: "j",
    offset: 512,
    problem: "it is damaged",
    after: 10,
    behind: new Set(),
    suspects: new Set(),
    others: "anybody",
    strayRecords: 0,
    strayBatch: 0,
    ...more,
  };
}

/** Only the batch of its last bytes counts here. */
const journaled = (provenBatch: number): JournaledStream => ({ provenBatch }) as JournaledStream;

describe("a stream may have lost its end", () => {
  for (const [what, expected, places, batch, provenBatch] of [
    ["where nobody knows whose records were there", true, [place()], 8, 0],
    ["but not when its files hold all up to there", false, [place()], 9, 0],
    ["but not when later records follow what it has", false, [place()], 0, 10],
    ["also when records of it come before", true, [place()], 0, 9],
    ["but not where all records are known", false, [place({ others: "nobody" })], 0, 0],
    ["but not where the file had bound only others", false, [place({ others: new Set(["other"]) })], 0, 0],
    ["where the file had bound it", true, [place({ others: new Set(["s"]) })], 0, 0],
    ["with records behind that nobody can give to a stream", true, [place({ strayRecords: 1, strayBatch: 12 })], 11, 0],
    ["at the end of the journal, whatever its files hold", true, [place({ after: Infinity })], 1000, 1000],
    ["in one of several places", true, [place({ others: "nobody" }), place()], 0, 0],
  ] as const) {
    test(what, () => assert.equal(mayHaveLost(places, { id: "s", batch }, journaled(provenBatch)), expected));
  }
});

test("a damaged place is told with the streams that it concerns", () => {
  // Only the name is asked for.
  const streams = new Map(["a", "b"].map((id) => [id, { identity: { id, name: `name of ${id}` } } as unknown as JournaledStream]));
  assert.equal(
    describeDamage(place({ suspects: new Set(["a"]), others: "nobody", behind: new Set(["b", "gone"]) }), streams),
    'it is damaged; it seems to hold records of "name of a"; records behind it are of "name of b", "gone"',
  );
  assert.equal(describeDamage(place({ others: "nobody" }), streams), "it is damaged; nothing can have been lost in it");
  assert.equal(
    describeDamage(place({ strayRecords: 3 }), streams),
    "it is damaged; it may hold records of any stream; 3 sound records behind it can't be given to a stream",
  );
  assert.equal(describeDamage(place({ others: new Set(["b"]) }), streams), 'it is damaged; it may hold records of "name of b"');
});
