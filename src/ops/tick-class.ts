import { executionAsyncResource } from "node:async_hooks";

/** One of the objects that Node queues, for good. */
let kept: object | null = null;

/**
 * Keeps the hidden class of what `process.nextTick` queues alive, and resolves to the object that does. There is none
 * of these while nothing happens, so that full collections of an idle process take their class with them. What V8
 * compiles after that makes each by calls into its runtime, for as long as the process lives: 4 to 7% of a small
 * request.
 */
export function keepTickClass(): Promise<object> {
  return new Promise((resolve) => {
    process.nextTick(() => {
      kept ??= executionAsyncResource();
      resolve(kept);
    });
  });
}
