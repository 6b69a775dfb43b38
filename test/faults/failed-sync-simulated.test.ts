import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../helpers/manual-clock.js";
import type { FaultCode } from "../helpers/simulated-call.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import { KEEP_ALL } from "../../src/stream/loaded/retention.js";
import { RunningProcess } from "./running-process.js";

const SETTINGS = {
  segmentBytes: 4000,
  journalBytes: 65_536,
  journalBypassBytes: 200,
  tailCacheBytes: 100_000,
  maxLoadedStreams: 100,
  maxLoadedProducers: 1000,
  ttlMode: "sliding",
  retention: KEEP_ALL,
} as const;
/** Enough for a write that fails to leave nothing, a part of itself, and all. */
const SEEDS = 40;

function start(disk: SimulatedDisk): RunningProcess {
  return new RunningProcess(disk.mount(), SETTINGS, new ManualClock(), null);
}

/** Creates a stream with `length` bytes while the journal's write fails with `code`; tells what is there after a crash: a length, or -1. */
async function createAndCrash(seed: number, code: FaultCode, length: number): Promise<{ readonly answer: string; readonly left: number }> {
  const disk = new SimulatedDisk(seed);
  const process = start(disk);
  await process.open();
  disk.failAfter(0, code, (call) => call === "log-write");
  const command = {
    contentType: "text/plain",
    ttlSeconds: null,
    expiresAtMs: null,
    closed: false,
    fork: null,
    body: Buffer.alloc(length, "x"),
  };
  const outcome = await process.registry.create("a", command);
  // Whatever follows the failure has time to do harm, and somebody looks.
  await process.registry.find("a");
  await disk.scheduler.idle();
  disk.crash(seed % 2 === 0 ? "kill" : "power");
  const next = start(disk);
  await next.open();
  const found = await next.registry.find("a");
  const left = "code" in found ? -1 : (await found.read(0, 10_000)).to;
  return { answer: outcome.kind === "refused" ? outcome.code : outcome.kind, left };
}

describe("a creation whose record could not be synced", () => {
  for (const length of [50, 1000]) {
    test(`is there whole after the next start, or not at all (${length} bytes)`, async () => {
      const lefts = new Set<number>();
      for (let seed = 0; seed < SEEDS; seed += 1) {
        const { answer, left } = await createAndCrash(seed, "EIO", length);
        assert.equal(answer, "storage-unavailable");
        lefts.add(left);
      }
      assert.deepEqual(
        [...lefts].sort((one, other) => one - other),
        [-1, length],
      );
    });

    test(`and is refused because the disk is full, is not there (${length} bytes)`, async () => {
      for (let seed = 0; seed < SEEDS; seed += 1) {
        assert.deepEqual(await createAndCrash(seed, "ENOSPC", length), { answer: "storage-full", left: -1 }, `seed ${seed}`);
      }
    });
  }
});
