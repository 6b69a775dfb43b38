import { isLockSocket } from "../format/layout.js";
import type { ProcessIdentity } from "./process-identity.js";
import type { Reach } from "../disk/sockets.js";

/** Who holds a lock, or asks for it. */
export interface LockHolder extends ProcessIdentity {
  /** The name of the socket in the directory that it listens on; `null` where the file system takes none. */
  readonly socket: string | null;
}

/**
 * What is known of a holder. `gone`: it has ended; `alive`: it runs, and no force takes its lock; the others: whether
 * it runs can't be seen from here, and why.
 */
export type Standing = "gone" | "alive" | "on-another-machine" | "in-another-namespace" | "behind-permissions";

/** What a holder is judged by. */
export interface Evidence {
  /** What its socket says; `missing` where it has none. */
  readonly reach: Reach;
  readonly self: ProcessIdentity;
  /** When the process with this id started; `undefined` when there is none, `null` where that can't be told. */
  readonly startedAtOf: (pid: number) => Promise<string | null | undefined>;
}

/**
 * Whether a holder still runs. Its socket decides, as long as the machine that made it has not been started again; the
 * host's name matters only where a directory is shared by machines.
 */
export async function standingOf(holder: LockHolder, { reach, self, startedAtOf }: Evidence): Promise<Standing> {
  if (reach === "answers") return "alive";
  const machine = machineOf(holder, self);
  if (machine === "started-again") return "gone";
  if (machine === "another") return "on-another-machine";
  if (reach === "refuses") return "gone";
  if (reach === "unknown") {
    // Another user's: whether there is such a process can be told all the same.
    const isHere = holder.pidNamespace === self.pidNamespace;
    return isHere && !(await isRunning(holder, startedAtOf)) ? "gone" : "behind-permissions";
  }
  if (isElsewhere(holder, self)) return "in-another-namespace";
  return (await isRunning(holder, startedAtOf)) ? "alive" : "gone";
}

function machineOf(holder: LockHolder, self: ProcessIdentity): "this" | "started-again" | "another" {
  if (holder.boot === null || self.boot === null) return holder.host === self.host ? "this" : "another";
  if (holder.boot === self.boot) return "this";
  return holder.host === self.host ? "started-again" : "another";
}

/** Whether the holder's process id is counted in another pid namespace than that of `self`, as far as both are told. */
export function isElsewhere(holder: ProcessIdentity, self: ProcessIdentity): boolean {
  return holder.pidNamespace !== null && self.pidNamespace !== null && holder.pidNamespace !== self.pidNamespace;
}

async function isRunning(holder: LockHolder, startedAtOf: Evidence["startedAtOf"]): Promise<boolean> {
  const startedAt = await startedAtOf(holder.pid);
  if (startedAt === undefined) return false;
  return holder.startedAt === null || startedAt === null || startedAt === holder.startedAt;
}

/** A holder as its file has it. */
export function encodeHolder(holder: LockHolder): Buffer {
  return Buffer.from(`${JSON.stringify(holder)}\n`);
}

/** The holder that a file names; `null` when it names nobody. */
export function decodeHolder(bytes: Buffer): LockHolder | null {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    // Cut short or damaged.
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const fields = new Map<string, unknown>(Object.entries(value));
  const text = (name: string): string | null => {
    const field = fields.get(name);
    return typeof field === "string" ? field : null;
  };
  const pid = fields.get("pid");
  const host = text("host");
  if (typeof pid !== "number" || host === null) return null;
  const socket = text("socket");
  return {
    pid,
    host,
    startedAt: text("startedAt"),
    boot: text("boot"),
    pidNamespace: text("pidNamespace"),
    socket: socket !== null && isLockSocket(socket) ? socket : null,
  };
}
