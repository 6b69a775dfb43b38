import {
  decodeIdentity,
  fieldsOf,
  hasEndedHere,
  machineOf,
  processStanding,
} from "../../../ops/lock/process-identity.js";
import type { ProcessIdentity, ProcessStanding, StartedAtOf } from "../../../ops/lock/process-identity.js";
import type { Reach } from "../disk/sockets.js";
import { isLockSocket } from "../format/layout.js";

/** Who holds a lock, or asks for it. */
export interface LockHolder extends ProcessIdentity {
  /** The name of the socket in the directory that it listens on; `null` where the file system takes none. */
  readonly socket: string | null;
}

/**
 * What is known of a holder. `gone`: it has ended; `alive`: it runs, and no force takes its lock; the others: whether
 * it runs can't be seen from here, and why.
 */
export type Standing = ProcessStanding | "behind-permissions";

/** What a holder is judged by. */
export interface Evidence {
  /** What its socket says; `missing` where it has none. */
  readonly reach: Reach;
  readonly self: ProcessIdentity;
  readonly startedAtOf: StartedAtOf;
}

/** Whether a holder still runs. Its socket decides, as long as the machine that made it has not been started again. */
export async function standingOf(holder: LockHolder, { reach, self, startedAtOf }: Evidence): Promise<Standing> {
  if (reach === "answers") return "alive";
  if (reach === "missing" || machineOf(holder, self) !== "this") return processStanding(holder, self, startedAtOf);
  if (reach === "refuses") return "gone";
  // Another user's: whether there is such a process can be told all the same.
  return (await hasEndedHere(holder, self, startedAtOf)) ? "gone" : "behind-permissions";
}

/** A holder as its file has it. */
export function encodeHolder(holder: LockHolder): Buffer {
  return Buffer.from(`${JSON.stringify(holder)}\n`);
}

/** The holder that a file names; `null` when it names nobody. */
export function decodeHolder(bytes: Buffer): LockHolder | null {
  const fields = fieldsOf(bytes.toString("utf8"));
  const [identity, socket] = [decodeIdentity(fields), fields.get("socket")];
  if (identity === null) return null;
  return { ...identity, socket: typeof socket === "string" && isLockSocket(socket) ? socket : null };
}
