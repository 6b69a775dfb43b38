import type { MaybePromise } from "../../storage/storage.js";

/** Calls `next` with a value: at once if it is there, so that reads from memory never wait, else when it resolves. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
