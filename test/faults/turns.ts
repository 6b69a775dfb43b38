/**
 * A turn of the event loop without the loop: nothing in a history waits for the system, so that each turn may come as
 * soon as all promises have had theirs. The real one asks the system for news each time, and most of a history is turns.
 */
const waiting: (() => void)[] = [];
/** Its `then` costs less than `queueMicrotask`, which makes a resource of each call. */
const settled = Promise.resolve();
let next = 0;
let isRunning = false;

function setTurn(run: () => void): void {
  waiting.push(run);
  if (isRunning) return;
  isRunning = true;
  void settled.then(proceed);
}

/** Ticks come when no promise has anything left to do. */
function proceed(): void {
  process.nextTick(runNext);
}

function runNext(): void {
  const run = waiting[next];
  next += 1;
  if (next < waiting.length) void settled.then(proceed);
  else {
    waiting.length = 0;
    next = 0;
    isRunning = false;
  }
  run?.();
}

/** Runs `work` with turns of this kind for everything that asks for one by `setImmediate`. */
export async function withFastTurns<T>(work: () => Promise<T>): Promise<T> {
  const real = globalThis.setImmediate;
  // Nobody here promisifies it, or takes a call back.
  globalThis.setImmediate = setTurn as unknown as typeof setImmediate;
  try {
    return await work();
  } finally {
    globalThis.setImmediate = real;
  }
}
