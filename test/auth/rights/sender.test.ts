import assert from "node:assert/strict";
import { test } from "node:test";
import { senderOf } from "../../../src/auth/rights/sender.js";

for (const [title, caller, expected] of [
  ["who showed nothing, or something wrong, counts by address", null, "192.0.2.1"],
  ["so does the public", { id: null }, "192.0.2.1"],
  ["a caller counts by its credential", { id: "token ci" }, "token ci"],
  ["and by that alone where nobody asked for it", { id: "ticket k1 x", askedBy: null }, "ticket k1 x"],
  [
    "one who came with a ticket counts by who asked for it, and by address",
    { id: "ticket k1 x", askedBy: "tickets of a" },
    "tickets of a 192.0.2.1",
  ],
] as const)
  test(title, () => assert.equal(senderOf(caller, "192.0.2.1"), expected));
