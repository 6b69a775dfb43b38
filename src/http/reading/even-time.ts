// Gives answers a time that tells little of the work behind them.

import { stopwatchMs, type Clock } from "../../ops/clock.js";

/** The least that such an answer takes; one that takes longer, takes twice as long, four times, and so on. */
const LEAST_MS = 20;

/** How long work takes in all that was done after `tookMs`, both in milliseconds. */
export function evenMs(tookMs: number): number {
  let evenMs = LEAST_MS;
  while (evenMs < tookMs) evenMs *= 2;
  return evenMs;
}

/** What `work` comes to, at the even time after it was begun. What it throws is thrown at once. */
export async function atEvenTime<T>(clock: Pick<Clock, "after">, work: () => Promise<T>): Promise<T> {
  const begunAtMs = stopwatchMs();
  const result = await work();
  const tookMs = stopwatchMs() - begunAtMs;
  await new Promise<void>((resolve) => void clock.after(evenMs(tookMs) - tookMs, resolve));
  return result;
}
