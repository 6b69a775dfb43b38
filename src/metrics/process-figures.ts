// Figures of the process, taken when they are asked for.

import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";

/** How finely the lag of the event loop is measured, in milliseconds: nothing shorter is seen. */
const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

/** How late the event loop was, in seconds. */
export interface EventLoopLag {
  readonly mean: number;
  readonly p99: number;
  readonly max: number;
}

const NO_LAG: EventLoopLag = { mean: 0, p99: 0, max: 0 };

/** Measures the lag of the event loop between two scrapes. Nothing is measured before the first. */
export class EventLoopMeter {
  #monitor: IntervalHistogram | null = null;

  /** The lag since it was last asked for. */
  take(): EventLoopLag {
    if (this.#monitor === null) {
      this.#monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#monitor.enable();
      return NO_LAG;
    }
    const { mean, max } = this.#monitor;
    const lag = { mean: lagOf(mean), p99: lagOf(this.#monitor.percentile(99)), max: lagOf(max) };
    this.#monitor.reset();
    return lag;
  }

  /** Ends measuring. */
  stop(): void {
    this.#monitor?.disable();
    this.#monitor = null;
  }
}

/** The monitor counts the whole time between two ticks; without one it has no number. */
function lagOf(nanoseconds: number): number {
  const seconds = nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000;
  return seconds > 0 ? seconds : 0;
}

/** Figures of the process; sizes in bytes, times in seconds. */
export interface ProcessFigures {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  /** Where V8 ends the process with status 134. */
  readonly heapLimitBytes: number;
  readonly externalBytes: number;
  /** When it began, in seconds since 1970. */
  readonly startSeconds: number;
  /** How long the event loop has been at work. */
  readonly busySeconds: number;
}

/** What the process has used until now. */
export function processFigures(): ProcessFigures {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: rss,
    heapUsedBytes: heapUsed,
    heapLimitBytes: getHeapStatistics().heap_size_limit,
    externalBytes: external,
    startSeconds: performance.timeOrigin / 1000,
    busySeconds: performance.eventLoopUtilization().active / 1000,
  };
}
