import type { MaybePromise } from "../../storage/storage.js";

/** Goes on with a value at once when it is there, and when it comes when it is not: what memory answers never waits. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
