import assert from "node:assert/strict";
import type { Clock } from "../../src/ops/clock.js";
import { ClusterStorage } from "../../src/storage/nats/cluster-storage.js";
import { Subjects } from "../../src/storage/nats/log/subjects.js";
import { Registry } from "../../src/stream/registry.js";
import { keptLog, type LogLine } from "./engine.js";
import { MemoryCluster, MemoryLog, type LogFaults } from "./memory-log.js";
import { Random } from "./random.js";
import { VirtualClock } from "./virtual-clock.js";

/** One server of several that serve the same streams. */
export interface FrontEnd {
  readonly registry: Registry;
  readonly storage: ClusterStorage;
  readonly log: readonly LogLine[];
  /** Its way to the servers: a test may hold calls there. */
  readonly way: MemoryLog;
}

/** Servers on one log in memory, and the clock that all of them go by. */
export interface FrontEnds {
  readonly clock: VirtualClock;
  readonly cluster: MemoryCluster;
  readonly all: readonly FrontEnd[];
  /** One more, which has nothing in memory; its clock is so far ahead of the others'. */
  begin(faults?: LogFaults, aheadMs?: number): FrontEnd;
  stop(): Promise<void>;
}

/** What front ends go by. */
interface Times {
  readonly clock: VirtualClock;
  readonly stopwatchMs: () => number;
}

function virtualTimes(): Times {
  const clock = new VirtualClock();
  return { clock, stopwatchMs: () => clock.nowMs() };
}

function aheadOf(clock: Clock, aheadMs: number): Clock {
  return { nowMs: () => clock.nowMs() + aheadMs, after: (delayMs, run) => clock.after(delayMs, run) };
}

/** Begins `count` front ends; what goes wrong on their ways to the log is drawn from `random`. */
export function frontEnds(count: number, random: Random, faults?: LogFaults, times = virtualTimes()): FrontEnds {
  const { clock } = times;
  const cluster = new MemoryCluster();
  const begun: FrontEnd[] = [];
  const begin = (itsFaults = faults, aheadMs = 0): FrontEnd => {
    const itsClock: Clock = aheadMs === 0 ? clock : aheadOf(clock, aheadMs);
    const next = (): number => random.next();
    const { log: notices, lines } = keptLog();
    const log = new MemoryLog(cluster, clock, next, itsFaults);
    const subjects = new Subjects("test", 2);
    const fixed = { subjects, notices, cacheBytes: 4096, timeoutMs: 30_000 };
    const storage = new ClusterStorage({ log, ...fixed, ...times, clock: itsClock, random: next });
    const registry = new Registry({
      storage,
      clock: itsClock,
      log: notices,
      ttlMode: "sliding",
      maxLoadedStreams: 100,
      maxLoadedProducers: 1000,
    });
    const frontEnd = { registry, storage, log: lines, way: log };
    begun.push(frontEnd);
    return frontEnd;
  };
  for (let index = 0; index < count; index += 1) begin();
  return {
    clock,
    cluster,
    all: [...begun],
    begin,
    stop: () =>
      clock.through(
        Promise.all(
          begun.map(({ registry, storage }) => {
            registry.stop();
            return storage.close();
          }),
        ).then(() => undefined),
      ),
  };
}

/** Runs a test with one front end, in virtual time. */
export async function withFrontEnds(run: (all: FrontEnds, one: FrontEnd) => Promise<void>): Promise<void> {
  const all = frontEnds(1, new Random(1));
  const [one] = all.all;
  assert.ok(one !== undefined);
  try {
    await all.clock.through(run(all, one));
  } finally {
    await all.stop();
  }
}
