import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Continuity, type ShardState } from "../../../../src/storage/nats/log/continuity.js";

const MADE = { created: "2026-11-27T10:00:00Z", first: 1, last: 20, reserved: 16 };

describe("a shard that is looked at again", () => {
  const table: readonly (readonly [string, Partial<ShardState>, Partial<ShardState>, string | null])[] = [
    ["goes on where it has more messages", {}, { last: 30 }, null],
    ["goes on where some are purged", {}, { first: 20, reserved: 0 }, null],
    ["goes on where it has less, as after a power failure", {}, { last: 10 }, null],
    ["was made anew where it was made at another time", {}, { created: "2026-11-27T11:00:00Z", last: 30 }, "remade"],
    ["was emptied where nothing of it is left", {}, { first: 21, reserved: 0 }, "emptied"],
    ["was emptied also where it has new messages", {}, { first: 21, last: 40 }, "emptied"],
    ["goes on where its only stream was deleted before it had a reserve", { reserved: 0 }, { first: 21, last: 21 }, null],
  ];
  for (const [name, before, now, found] of table)
    test(name, () => {
      const continuity = new Continuity();
      assert.equal(continuity.breakOf("a", { ...MADE, ...before }), null);
      assert.equal(continuity.breakOf("b", { ...MADE, created: "" }), null, "of another nothing is known");
      assert.equal(continuity.breakOf("a", { ...MADE, ...before, ...now }), found);
      assert.equal(continuity.breakOf("a", { ...MADE, ...before, ...now }), null, "once");
    });
});
