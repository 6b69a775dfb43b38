import { median } from "../scale/load.js";
import { Latencies } from "./latencies.js";

/** What was seen of a server for some seconds. */
export interface Sample {
  /** Since the beginning of the soak. */
  readonly atMs: number;
  readonly memoryMiB: number;
  readonly descriptors: number;
  readonly diskMiB: number;
  /** Of the appends since the sample before. */
  readonly latencies: Latencies;
}

/** One thing that a soak is for, as it was found. */
export interface Finding {
  readonly what: string;
  readonly value: string;
  readonly goal: string;
  readonly holds: boolean;
}

/** Parts of the whole that are compared: the first sixth, the one after it, and the last; ten minutes of an hour. */
const PART = 1 / 6;
/** What a figure may differ by chance. */
const NO_GROWTH = 1.1;
const MAX_P99_RATIO = 1.5;

/** Says whether anything grew after the first sixth, and whether appends became slower. */
export function findingsOf(samples: readonly Sample[]): Finding[] {
  const wholeMs = samples.at(-1)?.atMs ?? 0;
  const between = (from: number, to: number): Sample[] => samples.filter(({ atMs }) => atMs > wholeMs * from && atMs <= wholeMs * to);
  const [first, second, last] = [between(0, PART), between(PART, 2 * PART), between(1 - PART, 1)];
  const growth = (what: string, unit: string, of: (sample: Sample) => number): Finding => {
    const [before, after] = [median(second.map(of)), median(last.map(of))];
    return {
      what,
      value: `${before.toFixed(0)}${unit} in the second sixth, ${after.toFixed(0)}${unit} in the last`,
      goal: `at most ${NO_GROWTH} times`,
      holds: after <= before * NO_GROWTH,
    };
  };
  const [p99, lastP99] = [p99Of(first), p99Of(last)];
  return [
    growth("resident memory", " MiB", ({ memoryMiB }) => memoryMiB),
    growth("open descriptors", "", ({ descriptors }) => descriptors),
    growth("disk", " MiB", ({ diskMiB }) => diskMiB),
    {
      what: "p99 of appends",
      value: `${p99.toFixed(1)} ms in the first sixth, ${lastP99.toFixed(1)} ms in the last`,
      goal: `at most ${MAX_P99_RATIO} times`,
      holds: lastP99 <= p99 * MAX_P99_RATIO,
    },
  ];
}

function p99Of(samples: readonly Sample[]): number {
  const all = new Latencies();
  for (const { latencies } of samples) all.merge(latencies);
  return all.at(0.99);
}
