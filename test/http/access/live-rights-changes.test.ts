import assert from "node:assert/strict";
import { test } from "node:test";
import type { Authority } from "../../../src/auth/authority.js";
import type { Caller } from "../../../src/auth/rights/caller.js";
import { LiveRights } from "../../../src/http/access/live-rights.js";
import { ManualClock } from "../../helpers/manual-clock.js";

test("a right that was asked for before the auth file changed is looked at again before it counts", () => {
  let change = (): void => assert.fail("nobody listens");
  // Of the authority only this is asked: the change took the right away.
  const authority = { onChange: (listener: () => void) => (change = listener), renew: () => null } as unknown as Authority;
  const rights = new LiveRights(authority, new ManualClock());
  const caller = { id: "t", endsAtMs: Infinity } as unknown as Caller; // nothing else of it is asked
  const before = rights.changes;
  change();
  for (const [changesSeen, ended] of [
    [before, 1],
    [rights.changes, 0],
  ] as const) {
    let ends = 0;
    rights.hold({ caller, name: "a", changesSeen }, () => (ends += 1));
    assert.equal(ends, ended);
  }
});
