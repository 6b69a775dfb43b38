import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { playClusterHistory } from "../../helpers/cluster-history.js";

/** Histories on every run: these seeds, and as many new ones. */
const COUNT = 1000;

describe("several servers that write one stream, through a log that loses answers, lingers and lags", () => {
  test("keep what they acknowledged, once and in order, and take nothing back", async () => {
    const first = Date.now();
    let conflicts = 0;
    let acknowledged = 0;
    for (let index = 0; index < 2 * COUNT; index += 1) {
      const seed = index < COUNT ? index : first + index;
      const played = await playClusterHistory(seed).catch((fault: unknown) => {
        throw new Error(`npm run simulate -- --cluster --seed ${seed}`, { cause: fault });
      });
      conflicts += played.conflicts;
      acknowledged += played.acknowledged;
    }
    assert.ok(conflicts > COUNT && acknowledged > COUNT, `${conflicts} conflicts, ${acknowledged} acknowledged: too few to say anything`);
  });
});
