import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageObservations } from "../../../src/metrics/storage-observations.js";
import { append, bytesOf, created, crash, openFor, openEngine, settled } from "../../helpers/engine.js";
import { trimBefore } from "../../helpers/trim.js";

test("an engine counts what became durable, tells of each batch, and how much room its journal uses", async (context) => {
  const observer = new StorageObservations();
  const { storage } = await openFor(context, { observer });
  const before = storage.figures();
  assert.deepEqual([before.appendedBytes, before.recoveredRecords, before.sealedFiles], [0, 0, 0]);
  const stream = await created(storage, "a", "hello");
  await append(storage, stream, bytesOf(3000));
  const after = storage.figures();
  assert.equal(after.appendedBytes, 3005);
  assert.deepEqual([after.queuedBytes, after.cacheLimitBytes, after.unwrittenBytes > 0], [0, 64 * 1024, true]);
  assert.ok(before.journalFill > 0 && after.journalFill > before.journalFill && after.journalFill < 0.25, `${after.journalFill}`);
  assert.deepEqual([observer.syncs.count, observer.batches.sum], [2, 2]);
  assert.ok(observer.journalBytes > 3005);
});

test("an engine counts what retention dropped, once it is durable", async (context) => {
  const { storage } = await openFor(context);
  const stream = await created(storage, "a", "");
  for (let at = 0; at < 3; at += 1) await append(storage, stream, bytesOf(5000));
  trimBefore(storage, stream, 7000);
  await settled(storage, stream);
  const { trims, trimmedBytes } = storage.figures();
  assert.deepEqual([trims, trimmedBytes], [1, stream.earliest]);
  assert.ok(stream.earliest > 0);
});

test("an engine tells what its start found in the journal, and of the checkpoint that frees it", async (context) => {
  const engine = await openEngine();
  await created(engine.storage, "a", "hello");
  const observer = new StorageObservations();
  const { storage } = await openFor(context, { dir: await crash(engine), observer });
  assert.equal(storage.figures().recoveredRecords, 1);
  await storage.close();
  assert.ok(observer.checkpoints.count >= 1);
});
