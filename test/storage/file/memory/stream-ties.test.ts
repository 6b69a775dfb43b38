import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamTies } from "../../../../src/storage/file/memory/stream-ties.js";

test("the ties of a stream count its forks, those on their way too", () => {
  const ties = new StreamTies(null, 0);
  assert.deepEqual([ties.forkCount, ties.softDeleted, ties.parent], [0, false, null]);
  ties.pendingForks = 1;
  ties.link("f1", 10, 0);
  ties.link("f1", 20, 0);
  ties.link("f2", 30, 0);
  assert.equal(ties.forkCount, 3);
  ties.unlink("f1", 0);
  ties.unlink("unknown", 0);
  assert.equal(ties.forkCount, 2);
});

test("a fork holds trims while it is on its way, and while it needs bytes that are there", () => {
  const ties = new StreamTies(null, 5);
  assert.equal(ties.holdsTrims, false);
  ties.pendingForks = 1;
  assert.equal(ties.holdsTrims, true);
  ties.pendingForks = 0;
  ties.link("at the beginning", 5, 5);
  assert.equal(ties.holdsTrims, false);
  ties.link("later", 6, 5);
  assert.equal(ties.holdsTrims, true);
  ties.link("later", 0, 5);
  assert.equal(ties.holdsTrims, false, "it needs nothing any more");
  ties.link("later", 6, 5);
  ties.unlink("later", 5);
  assert.equal(ties.holdsTrims, false);
});
