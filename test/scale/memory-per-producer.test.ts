import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defaultSettings } from "../../src/options.js";
import { FileStorage } from "../../src/storage/file/file-storage.js";
import { Registry } from "../../src/stream/registry.js";
import { appendByName } from "../helpers/append.js";
import { keptLog } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { tempDir } from "../helpers/temp-dir.js";

const STREAMS = 40;
const PRODUCERS_EACH = 1000;
/** What a producer may take whose id is a UUID: a million of them are then less than 240 MiB. */
const MAX_BYTES_PER_PRODUCER = 250;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void; // the function that the flag brings

/** Bytes of memory that something still uses. */
function bytesInUse(): number {
  // What one collection sets free may free something else in the next.
  for (let round = 0; round < 3; round += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function appendOfEach(registry: Registry, stream: string): Promise<void> {
  await registry.create(stream, {
    contentType: "text/plain",
    ttlSeconds: null,
    expiresAtMs: null,
    closed: false,
    fork: null,
    body: Buffer.alloc(0),
  });
  for (let at = 0; at < PRODUCERS_EACH; at += 50) {
    const appends = Array.from({ length: 50 }, () => {
      const producer = { id: randomUUID(), epoch: 0, seq: 0 };
      return appendByName(registry, stream, {
        contentType: "text/plain",
        body: Buffer.from("x"),
        closes: false,
        producer,
        seq: null,
        ifMatch: null,
      });
    });
    for (const outcome of await Promise.all(appends)) assert.equal(outcome.kind, "appended");
  }
}

test("a producer in memory takes less than 250 bytes, and nothing once its stream has been idle", async (t) => {
  const clock = new ManualClock();
  const { log } = keptLog();
  const storage = await FileStorage.open({
    ...defaultSettings(),
    dir: join(tempDir(), "data"),
    fsync: false,
    clock,
    log,
    onFault: (error) => assert.fail(error),
  });
  const registry = new Registry({ storage, clock, log, ttlMode: "sliding", maxLoadedStreams: 100_000, maxLoadedProducers: 1_000_000 });
  registry.start();
  t.after(() => {
    registry.stop();
    return storage.close();
  });
  await appendOfEach(registry, "warm-up");
  const before = bytesInUse();
  for (let stream = 0; stream < STREAMS; stream += 1) await appendOfEach(registry, `s${stream}`);
  assert.equal(registry.producerCount, (STREAMS + 1) * PRODUCERS_EACH);
  const perProducer = (): number => Math.round((bytesInUse() - before) / (STREAMS * PRODUCERS_EACH));
  const taken = perProducer();
  t.diagnostic(`${taken} bytes per producer`);
  assert.ok(taken < MAX_BYTES_PER_PRODUCER, `${taken} bytes per producer`);
  // One round finds them used, the next lets them go.
  for (let rounds = 0; rounds < 2; rounds += 1) clock.advance(30_000);
  while (registry.loadedCount > 0) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    clock.advance(1000);
  }
  assert.equal(registry.producerCount, 0);
  let left = perProducer();
  // What the engine still has under way ends first.
  for (let turns = 0; turns < 100 && left >= MAX_BYTES_PER_PRODUCER / 5; turns += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    left = perProducer();
  }
  t.diagnostic(`${left} bytes per producer when all are idle`);
  assert.ok(left < MAX_BYTES_PER_PRODUCER / 5, `${left} bytes per producer are left`);
});
