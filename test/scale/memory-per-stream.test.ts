import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defaultSettings } from "../../src/options.js";
import { FileStorage } from "../../src/storage/file/file-storage.js";
import { Registry } from "../../src/stream/registry.js";
import { appendByName } from "../helpers/append.js";
import { keptLog } from "../helpers/engine.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { tempDir } from "../helpers/temp-dir.js";

const WARM_UP_STREAMS = 1000;
const STREAMS = 6000;
/** What a stream with one short append may take: 100,000 of them are then 238 MiB, and the process stays below 400 MiB. */
const MAX_BYTES_PER_STREAM = 2500;

/**
 * Longer than the test can turn its clock while files are written: streams that expire are deleted, and the journal
 * holds deleted ones until its next checkpoint.
 */
const TTL_SECONDS = 1e9;

/** What is left by then is kept for good. */
const DEADLINE_MS = 60_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void; // the function that the flag brings

/** Bytes of memory that something still uses. */
function bytesInUse(): number {
  // What one collection sets free may free something else in the next.
  for (let round = 0; round < 3; round += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function openRegistry(t: TestContext, dir: string, clock: ManualClock): Promise<Registry> {
  const { log } = keptLog();
  const storage = await FileStorage.open({ ...defaultSettings(), dir, fsync: false, clock, log, onFault: (error) => assert.fail(error) });
  const registry = new Registry({ storage, clock, log, ttlMode: "sliding", maxLoadedStreams: 100_000, maxLoadedProducers: 1_000_000 });
  registry.start();
  t.after(() => {
    registry.stop();
    return storage.close();
  });
  return registry;
}

async function appendToEach(registry: Registry, prefix: string, streams: number): Promise<void> {
  const lifetime = { contentType: "text/plain", ttlSeconds: TTL_SECONDS, expiresAtMs: null, fork: null };
  for (let index = 0; index < streams; index += 50) {
    const names = Array.from({ length: 50 }, (_, offset) => `${prefix}/room-${index + offset}`);
    await Promise.all(names.map((name) => registry.create(name, { ...lifetime, closed: false, body: Buffer.alloc(0) })));
    const append = {
      contentType: "text/plain",
      body: Buffer.from("y".repeat(100)),
      closes: false,
      producer: null,
      seq: null,
      ifMatch: null,
    };
    for (const outcome of await Promise.all(names.map((name) => appendByName(registry, name, append))))
      assert.equal(outcome.kind, "appended");
  }
}

test("a stream in memory takes less than 2,500 bytes, and nothing once it has been idle", async (t) => {
  const clock = new ManualClock();
  const registry = await openRegistry(t, join(tempDir(), "data"), clock);
  await appendToEach(registry, "warm-up", WARM_UP_STREAMS);
  const before = bytesInUse();
  await appendToEach(registry, "chats", STREAMS);
  assert.equal(registry.loadedCount, WARM_UP_STREAMS + STREAMS);
  const perStream = (bytesInUse() - before) / STREAMS;
  t.diagnostic(`${Math.round(perStream)} bytes per stream`);
  assert.ok(perStream < MAX_BYTES_PER_STREAM, `${Math.round(perStream)} bytes per stream`);
  // One round finds them used, the next lets them go.
  for (let rounds = 0; rounds < 2; rounds += 1) clock.advance(30_000);
  while (registry.loadedCount > 0) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    clock.advance(1000);
  }
  const leftPerStream = (): number => (bytesInUse() - before) / STREAMS;
  let left = leftPerStream();
  // What the engine still has under way ends first: files of thousands of streams that it lets go.
  for (const endMs = performance.now() + DEADLINE_MS; left >= MAX_BYTES_PER_STREAM / 10 && performance.now() < endMs;) {
    for (let turns = 0; turns < 1000; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    left = leftPerStream();
  }
  t.diagnostic(`${Math.round(left)} bytes per stream when all are idle`);
  assert.ok(left < MAX_BYTES_PER_STREAM / 10, `${Math.round(left)} bytes per stream are left`);
});
