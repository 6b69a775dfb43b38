import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { Layout, segmentPath } from "../../../src/storage/file/format/layout.js";
import { RetentionTimer, segmentRollOf, type RetentionLimits } from "../../../src/stream/loaded/retention.js";
import { Registry } from "../../../src/stream/registry.js";
import { Stream } from "../../../src/stream/loaded/stream.js";
import { appendByName } from "../../helpers/append.js";
import { bytesOf, keptLog, openEngine, reopen, type Engine } from "../../helpers/engine.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const KEEP = { maxBytes: Infinity, maxAgeMs: Infinity };

test("segments roll early enough for a limit to mean something, but never below a least size", () => {
  assert.deepEqual(segmentRollOf(KEEP, 1000), { segmentBytes: 1000, segmentAgeMs: Infinity });
  assert.deepEqual(segmentRollOf({ maxBytes: 800_000, maxAgeMs: 8000 }, 1e6), { segmentBytes: 100_000, segmentAgeMs: 1000 });
  assert.equal(segmentRollOf({ ...KEEP, maxBytes: 800_000 }, 50_000).segmentBytes, 50_000);
  assert.equal(segmentRollOf({ ...KEEP, maxBytes: 1 }, 1e6).segmentBytes, 4096);
});

describe("the timer", () => {
  for (const [maxAgeMs, pauseMs] of [
    [1000, 250],
    [32_000, 1000],
    [1e9, 30_000],
  ] as const) {
    test(`rings each ${pauseMs} ms for an age of ${maxAgeMs} ms, until it is stopped`, () => {
      const clock = new ManualClock();
      let rounds = 0;
      const timer = new RetentionTimer(clock, { ...KEEP, maxAgeMs }, () => (rounds += 1));
      timer.start();
      clock.advance(pauseMs - 1);
      assert.equal(rounds, 0);
      clock.advance(1);
      clock.advance(pauseMs);
      assert.equal(rounds, 2);
      timer.stop();
      clock.advance(10 * pauseMs);
      assert.equal(rounds, 2);
    });
  }

  test("does not run where nothing ages", () => {
    const clock = new ManualClock();
    new RetentionTimer(clock, { ...KEEP, maxBytes: 1 }, () => assert.fail()).start();
    clock.advance(1e9);
  });
});

function registryOn(t: TestContext, engine: Engine, retention: RetentionLimits): Registry {
  const { log } = keptLog();
  const registry = new Registry({
    storage: engine.storage,
    clock: engine.clock,
    log,
    ttlMode: "sliding",
    retention,
    maxLoadedStreams: 100,
    maxLoadedProducers: 100,
  });
  registry.start();
  t.after(() => registry.stop());
  return registry;
}

async function append(registry: Registry, length: number): Promise<void> {
  const outcome = await appendByName(registry, "s", {
    contentType: "text/plain",
    body: bytesOf(length),
    closes: false,
    producer: null,
    seq: null,
    ifMatch: null,
  });
  assert.equal(outcome.kind, "appended");
}

async function create(registry: Registry): Promise<Stream> {
  await registry.create("s", {
    contentType: "text/plain",
    ttlSeconds: null,
    expiresAtMs: null,
    closed: false,
    fork: null,
    body: Buffer.alloc(0),
  });
  return find(registry);
}

async function find(registry: Registry): Promise<Stream> {
  const found = await registry.find("s");
  assert.ok(found instanceof Stream);
  return found;
}

describe("a registry", () => {
  test("keeps the newest bytes of a stream, and not a segment more", async (t) => {
    const engine = await openEngine({ segmentBytes: 1000 });
    const registry = registryOn(t, engine, { ...KEEP, maxBytes: 4000 });
    const stream = await create(registry);
    for (let round = 0; round < 100; round += 1) {
      await append(registry, 300);
      const kept = stream.tail - stream.stored.earliest;
      assert.ok(kept >= Math.min(stream.tail, 4000), `${kept} bytes are kept of ${stream.tail}`);
    }
    await engine.files.idle();
    assert.ok(stream.tail - stream.stored.earliest < 5000);
    assert.equal(existsSync(segmentPath(new Layout(engine.dir).streamDirectory("s"), 0)), false);
    await engine.storage.close();
  });

  test("drops what is too old also where nothing is appended any more", async (t) => {
    const engine = await openEngine({ segmentAgeMs: 1000 });
    const registry = registryOn(t, engine, { ...KEEP, maxAgeMs: 8000 });
    const stream = await create(registry);
    await append(registry, 100);
    engine.clock.advance(4000);
    await append(registry, 50);
    engine.clock.advance(4250);
    await engine.files.idle();
    assert.deepEqual([stream.stored.earliest, stream.tail], [100, 150]);
    engine.clock.advance(4000);
    await engine.files.idle();
    assert.deepEqual([stream.stored.earliest, stream.tail], [150, 150]);
    await append(registry, 7);
    assert.equal(stream.tail, 157);
    await engine.storage.close();
  });

  test("finds what is too old in streams that nobody asks for, after a restart too", async (t) => {
    const first = await openEngine();
    const quiet = registryOn(t, first, KEEP);
    await create(quiet);
    await append(quiet, 100);
    quiet.stop();
    const engine = await reopen(first);
    const registry = registryOn(t, engine, { ...KEEP, maxAgeMs: 1000 });
    engine.clock.advance(2000);
    await engine.files.idle();
    engine.clock.advance(61_000);
    await engine.files.idle();
    assert.equal((await find(registry)).stored.earliest, 100);
    await engine.storage.close();
  });
});
