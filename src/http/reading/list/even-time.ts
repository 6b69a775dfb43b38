// Gives answers a time that tells little of the work behind them.

import { stopwatchMs, type Clock } from "../../../ops/clock.js";
import { nextTurn } from "../../../ops/turns.js";

/** The least that such an answer takes; one that takes longer, takes twice as long, four times, and so on. */
const LEAST_MS = 20;
/** Timers know whole milliseconds, and may come early: so much of the time is waited for without them. */
const WITHOUT_TIMER_MS = 2;

/** How long work takes in all that was done after `tookMs`, both in milliseconds. */
export function evenMs(tookMs: number): number {
  let evenMs = LEAST_MS;
  while (evenMs < tookMs) evenMs *= 2;
  return evenMs;
}

/**
 * What `work` comes to, at the even time after it was begun: to a turn of the event loop, as a timer that is set after
 * the work would pass its fractions of a millisecond on. What it throws is thrown at once.
 */
export async function atEvenTime<T>(
  clock: Pick<Clock, "after">,
  work: () => Promise<T>,
  stopwatch: () => number = stopwatchMs,
): Promise<T> {
  const begunAtMs = stopwatch();
  const result = await work();
  const tookMs = stopwatch() - begunAtMs;
  const wholeMs = evenMs(tookMs);
  const untilMs = begunAtMs + wholeMs;
  const timerMs = wholeMs - tookMs - WITHOUT_TIMER_MS;
  if (timerMs > 0) await new Promise<void>((resolve) => void clock.after(timerMs, resolve));
  while (stopwatch() < untilMs) await nextTurn();
  return result;
}
