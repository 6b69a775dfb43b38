import type { MaybePromise } from "../../storage.js";
import { LogUnavailableError, type ReplicatedLog } from "../log/replicated-log.js";

/** An answer may be lost again, and the next leader may be lost as well. */
const MAX_TRIES = 4;

/**
 * What `ask` finds in the log. Where a part of that has no leader it asks again once there is one: servers elect one in
 * a few seconds. `first` is what was asked already. Throws LogUnavailableError.
 */
export async function whenLed<T>(
  log: ReplicatedLog,
  ask: () => MaybePromise<T>,
  first: Promise<T> | null = null,
): Promise<T> {
  let asked: MaybePromise<T> | null = first;
  for (let tries = 1; ; tries += 1) {
    try {
      return await (asked ?? ask());
    } catch (fault) {
      if (!(fault instanceof LogUnavailableError) || tries === MAX_TRIES) throw fault;
      if (!(await log.untilLed(fault.part))) throw fault;
      asked = null;
    }
  }
}
