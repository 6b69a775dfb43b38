import assert from "node:assert/strict";
import { test } from "node:test";
import { SCAN_TURNS } from "../../../src/stream/rules/scan-turns.js";

test("those who look through many bytes go on one in a turn of the event loop, in their order, and those with few at once", async () => {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  const went: [who: number, turn: number][] = [];
  const go = async (who: number, bytes: number): Promise<void> => {
    for (let step = 0; step < 2; step += 1) {
      await SCAN_TURNS.forBytes(bytes);
      went.push([who, turns]);
    }
  };
  await Promise.all([go(1, 256 * 1024), go(2, 256 * 1024), go(3, 1024)]);
  clearImmediate(immediate);
  assert.deepEqual(
    went.map(([who]) => who),
    [3, 3, 1, 2, 1, 2],
  );
  const large = went.filter(([who]) => who < 3).map(([, turn]) => turn);
  assert.equal(new Set(large).size, 4, large.join(", "));
});
