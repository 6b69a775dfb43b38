import type { LoadReport } from "./load-process.js";

/** What some loads, one after the other, came to as if they had been one. */
export interface Together {
  /** The mean of their requests per second. */
  readonly rate: number;
  /** Of all answers: as exact as the thousandths that the loads tell. */
  readonly p99Ms: number;
}

/** Puts together what went on for the same time. */
export function together(loads: readonly Pick<LoadReport, "requestsPerSecond" | "answers" | "thousandthsMs">[]): Together {
  const all = loads.reduce((sum, { answers }) => sum + answers, 0);
  const rate = loads.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0) / loads.length;
  const latencies = loads.flatMap(({ answers, thousandthsMs }) =>
    thousandthsMs.map((ms) => ({ ms, answers: answers / thousandthsMs.length })),
  );
  let faster = 0;
  for (const { ms, answers } of latencies.sort((a, b) => a.ms - b.ms)) {
    faster += answers;
    if (faster >= all * 0.99) return { rate, p99Ms: ms };
  }
  return { rate, p99Ms: NaN };
}
