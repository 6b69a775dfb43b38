// Keeps what a caller's own code throws out of the work that called it.

import type { Log } from "../ops/log.js";

/** Throws `error` in a turn of its own, as an event of the process: it is a fault of the caller's code. */
export function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}

/** `hook`, whose exceptions go to `report`. */
export function guarded<Args extends readonly unknown[]>(
  hook: (...args: Args) => void,
  report: (error: unknown) => void = throwLater,
): (...args: Args) => void {
  return (...args) => {
    try {
      hook(...args);
    } catch (error) {
      report(error);
    }
  };
}

/** A caller's log, none of whose methods throws. */
export function guardedLog(log: Log, report?: (error: unknown) => void): Log {
  const at = (level: "debug" | "info" | "warn" | "error"): Log["info"] =>
    guarded((message, fields) => log[level](message, fields), report);
  return {
    get isDebug() {
      return log.isDebug === true;
    },
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}
