// How a stop waits.

import type { Clock } from "../ops/clock.js";

/** Waits for `work`, at most `limitMs`. */
export function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, resolve);
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    work.then(done, reject);
  });
}

/** `run`, but only the first time; later calls wait for the same. The process does not end before it has. */
export function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => (running ??= keptAlive(run));
}

/** Runs in a process that nothing else may keep alive: timers of a {@link Clock} do not. */
async function keptAlive(run: () => Promise<void>): Promise<void> {
  const alive = setInterval(() => {}, 60_000);
  try {
    await run();
  } finally {
    clearInterval(alive);
  }
}
