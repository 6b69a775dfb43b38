import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageObservations } from "../../src/metrics/storage-observations.js";

test("a sync lasts from when its batch was sent until it is durable, in seconds", () => {
  let nowMs = 100;
  const observations = new StorageObservations(() => nowMs);
  observations.batchSent();
  nowMs = 102;
  observations.batchWritten(7, 500);
  observations.batchSent();
  observations.batchFailed();
  observations.checkpointed(1500);
  const { syncs, batches, checkpoints, journalBytes, failedBatches } = observations;
  assert.deepEqual([syncs.count, syncs.sum, batches.count, batches.sum], [1, 0.002, 1, 7]);
  assert.deepEqual([checkpoints.sum, journalBytes, failedBatches], [1.5, 500, 1]);
});
