import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { keptLog } from "../../../helpers/engine.js";
import { Continuity, type ShardState } from "../../../../src/storage/nats/log/continuity.js";

const MADE = { created: "2026-11-27T10:00:00Z", first: 1, last: 20, reserved: 16 };

describe("a shard that is looked at again", () => {
  const table: readonly (readonly [string, Partial<ShardState>, Partial<ShardState>, string | null])[] = [
    ["goes on where it has more messages", {}, { last: 30 }, null],
    ["goes on where some are purged", {}, { first: 20, reserved: 0 }, null],
    ["goes on where it has less, as after a power failure", {}, { last: 10 }, null],
    [
      "was made anew where it was made at another time",
      {},
      { created: "2026-11-27T11:00:00Z", last: 30 },
      "a was deleted and made anew by somebody else",
    ],
    ["was emptied where nothing of it is left", {}, { first: 21, reserved: 0 }, "all messages of a were purged by somebody else"],
    ["was emptied also where it has new messages", {}, { first: 21, last: 40 }, "all messages of a were purged by somebody else"],
    ["goes on where its only stream was deleted before it had a reserve", { reserved: 0 }, { first: 21, last: 21 }, null],
  ];
  for (const [name, before, now, found] of table)
    test(name, () => {
      const { log, lines } = keptLog();
      const continuity = new Continuity(log);
      continuity.saw("a", { ...MADE, ...before });
      // Of another nothing is known.
      continuity.saw("b", { ...MADE, created: "" });
      assert.deepEqual(lines, []);
      // Twice, and told once.
      for (let looks = 0; looks < 2; looks += 1) continuity.saw("a", { ...MADE, ...before, ...now });
      assert.deepEqual(
        lines.map(({ level, message }) => `${level} ${message}`),
        found === null ? [] : [`error ${found}`],
      );
    });
});
