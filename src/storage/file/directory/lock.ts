import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../ops/clock.js";
import { Control, type Conversation } from "../../../ops/control.js";
import { isElsewhere, processStart, thisProcess, type ProcessIdentity } from "../../../ops/lock/process-identity.js";
import type { Log } from "../../../ops/log.js";
import { errorCode, isPathFault, readWhole, removeFile, type Files } from "../disk/files.js";
import { claimIdOf, claimPath, claimSocket, isLockSocket, Layout } from "../format/layout.js";
import { hasJournalOpen, procOf } from "./journal-users.js";
import { Claim, type ClaimOptions } from "./lock-claim.js";
import { decodeHolder, standingOf, type Evidence, type LockHolder, type Standing } from "./lock-holder.js";
import type { Reach } from "../disk/sockets.js";

/** The data directory can't be used; the message is one line for a human. */
export class DirectoryError extends Error {
  override readonly name = "DirectoryError";
}

/** A process has the data directory open, and answers at its socket. */
export class OpenElsewhereError extends DirectoryError {}

/** Where a lock is, and how it judges who else asks for it. */
export interface LockOptions extends ClaimOptions {
  readonly startedAtOf: Evidence["startedAtOf"];
  /** Takes away the lock of a process that can't be seen from here. */
  readonly force: boolean;
  /** Lets others that ask for the lock get on. */
  readonly pause: () => Promise<void>;
}

/** How a lock is taken. */
export interface LockTerms {
  /** Takes away the lock of a process that can't be seen from here. */
  readonly force: boolean;
  readonly log: Log;
  /** What its socket is for beside that, by command. */
  readonly conversations?: ReadonlyMap<string, Conversation>;
}

/** A lock that was taken. */
export interface HeldLock {
  readonly claim: Claim;
  /** Whose lock was taken away by force. */
  readonly overridden: LockHolder | null;
}

/** Somebody who has the lock or asks for it, and may be living. `holder` is `null` where only a socket answers. */
interface Occupant {
  readonly holder: LockHolder | null;
  readonly reach: Reach;
  readonly standing: Exclude<Standing, "gone">;
}

/** One of those who ask for the lock. */
interface Rival extends Occupant {
  readonly id: string;
}

/** How often, and how many times, one who asks for the lock looks whether the others who ask have got on: for 5 s. */
const PAUSE_MS = 20;
const MAX_ROUNDS = 250;
/** How often one lock is looked at again that changes while it is looked at. */
const MAX_LOOKS = 3;

/**
 * Locks a directory for this process; returns what gives it back. A Unix socket in the directory is what keeps the
 * lock: while the process lives, the kernel answers there, to every container of the machine. Throws {@link
 * DirectoryError}.
 */
export async function lockDirectory(
  files: Files,
  path: string,
  { force, log, conversations }: LockTerms,
): Promise<() => Promise<void>> {
  const { claim, overridden } = await takeLock(await optionsFor(files, path, force, conversations));
  if (overridden !== null) {
    log.warn("the lock of another process was taken away: its server must not be running", {
      file: path,
      pid: overridden.pid,
      host: overridden.host,
    });
  }
  if (claim.socketFault !== null) {
    log.warn("the file system takes no sockets: a server in another container can't be told from one that has ended", {
      dir: dirname(path),
      fault: claim.socketFault,
    });
  }
  return () => claim.end();
}

/** Makes sure that nobody has a directory open, and leaves its lock as it is. Throws {@link DirectoryError}. */
export async function assertUnlocked(files: Files, path: string, force: boolean): Promise<void> {
  const options = await optionsFor(files, path, force);
  const holder = await holderOf(options);
  if (holder !== null && !isOverridden(holder, options)) throw await inUse(holder, options);
  const rival = await rivalOf(options, null);
  if (rival !== null) throw await inUse(rival, options);
}

/**
 * Makes sure that nobody has a directory open, for one who reads it and takes no lock. Resolves to what throws a {@link
 * DirectoryError} once somebody has opened it since.
 */
export async function watchUnlocked(files: Files, layout: Layout, force: boolean): Promise<() => Promise<void>> {
  // Read before the lock is looked at: whoever takes that later has not changed these yet.
  const before = await tracesIn(files, layout);
  await assertUnlocked(files, layout.lock, force);
  return async () => {
    if ((await tracesIn(files, layout)) === before) return;
    throw new DirectoryError(`${layout.root} was opened meanwhile: run it again`);
  };
}

/** What changes when somebody opens a directory, also when it is closed again: each start begins a journal file. */
async function tracesIn(files: Files, { lock, marker, backup, journal }: Layout): Promise<string> {
  const traces = [await traceOf(async () => (await files.list(journal)).sort().join(" "))];
  for (const path of [lock, marker, backup])
    traces.push(await traceOf(async () => (await readWhole(files, path))?.toString("latin1") ?? null));
  return JSON.stringify(traces);
}

async function traceOf(look: () => Promise<string | null>): Promise<string | null> {
  try {
    return await look();
  } catch (error) {
    if (!isPathFault(error)) throw error;
    return errorCode(error);
  }
}

async function optionsFor(
  files: Files,
  path: string,
  force: boolean,
  conversations?: LockTerms["conversations"],
): Promise<LockOptions> {
  const control = new Control(systemClock(), conversations);
  const proc = procOf(files);
  return {
    files,
    path,
    self: await thisProcess(proc),
    startedAtOf: (pid) => processStart(proc, pid),
    force,
    accept: (connection) => control.serve(connection),
    // A timer that keeps the process alive: nothing else may be under way.
    pause: () => sleep(PAUSE_MS),
  };
}

/**
 * Takes the directory's lock, also one that a crash left. Throws {@link DirectoryError}.
 *
 * Each who asks first publishes a claim, under a name of its own, and then looks for the others'. Of two, the later to
 * publish sees the other: so no two go on at the same time, whoever is stopped wherever. The one with the lowest id
 * waits until the others have withdrawn or one of them, who came too early to see it, has the lock. Nothing is ever
 * removed that could be somebody's by now: names are used once.
 */
export async function takeLock(options: LockOptions): Promise<HeldLock> {
  let claim: Claim | null = null;
  let rival: Rival | null = null;
  try {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      rival = await rivalOf(options, claim);
      // Looked at last: who was among the rivals and has the lock now is seen here.
      const holder = await holderOf(options);
      if (holder !== null && !isOverridden(holder, options)) throw await inUse(holder, options);
      if (rival === null && claim === null) {
        claim = await Claim.publish(options);
        if (claim !== null) continue;
      } else if (rival === null && claim !== null && (await takesOver(options, claim))) {
        await removeLeftovers(options, claim);
        const held = { claim, overridden: holder?.holder ?? null };
        claim = null;
        return held;
      } else if (claim !== null && (rival === null || rival.id < claim.id)) {
        await claim.end();
        claim = null;
      }
      await options.pause();
    }
  } finally {
    await claim?.end();
  }
  if (rival !== null) throw await inUse(rival, options);
  throw new DirectoryError(
    `the directory's lock changes hands too fast (${options.path}, process ${options.self.pid})`,
  );
}

/** Of those who ask for the lock, and may be living, the one with the lowest id, beside `own`. */
async function rivalOf(options: LockOptions, own: Claim | null): Promise<Rival | null> {
  for (const [id] of await claimsIn(options)) {
    const rival = id === own?.id ? null : await rivalAt(options, id);
    if (rival !== null && !isOverridden(rival, options)) return rival;
  }
  return null;
}

async function rivalAt(options: LockOptions, id: string): Promise<Rival | null> {
  const { files, path } = options;
  // Read first: whose file is there listened before, so its socket is no less there.
  const socket = claimSocket(path, id);
  const holder = (await holderIn(files, claimPath(path, id))) ?? (await holderOn(options, socket));
  const reach = await files.reach(join(dirname(path), socket));
  const standing = holder === null ? standingBehind(reach) : await standingOf(holder, { ...options, reach });
  return standing === "gone" ? null : { id, holder, reach, standing };
}

async function holderIn(files: Files, path: string): Promise<LockHolder | null> {
  const bytes = await readWhole(files, path);
  return bytes === null ? null : decodeHolder(bytes);
}

/** Who has the lock, if it is the one with this socket. */
async function holderOn({ files, path }: LockOptions, socket: string): Promise<LockHolder | null> {
  const holder = await holderIn(files, path);
  return holder?.socket === socket ? holder : null;
}

/** Takes the lock. A socket that this user can't connect to goes first: after that, nobody knows whose it was. */
async function takesOver(options: LockOptions, claim: Claim): Promise<boolean> {
  const { files, path } = options;
  const holder = await holderIn(files, path);
  if (holder !== null && holder.socket !== null) {
    const socket = join(dirname(path), holder.socket);
    const reach = await files.reach(socket);
    if (reach === "unknown" && (await standingOf(holder, { ...options, reach })) === "gone")
      await removeFile(files, socket);
  }
  return claim.promote();
}

/** What a socket alone says of its process, whose file is not there, or damaged. */
function standingBehind(reach: Reach): Standing {
  if (reach === "answers") return "alive";
  return reach === "unknown" ? "behind-permissions" : "gone";
}

/** Who has the lock and may be living; `null` when nobody has it. */
async function holderOf(options: LockOptions): Promise<Occupant | null> {
  const { files, path } = options;
  let seen: Occupant | null = null;
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const bytes = await readWhole(files, path);
    const holder = bytes === null ? null : decodeHolder(bytes);
    if (bytes === null || holder === null) return null;
    const reach = holder.socket === null ? "missing" : await files.reach(join(dirname(path), holder.socket));
    const standing = await standingOf(holder, { ...options, reach });
    if (standing === "gone") return null;
    seen = { holder, reach, standing };
    // It may have given the lock back while it was asked.
    if ((await readWhole(files, path))?.equals(bytes) === true) break;
  }
  return seen;
}

/** The names of claims, their sockets and what was to become them, by id, the lowest first. */
async function claimsIn({ files, path }: LockOptions): Promise<[string, string[]][]> {
  const claims = new Map<string, string[]>();
  for (const name of await files.list(dirname(path))) {
    const id = claimIdOf(name);
    if (id !== null) claims.set(id, [...(claims.get(id) ?? []), name]);
  }
  return [...claims].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Removes what others who asked for the lock, or had it, have left. Who finds a file of its own gone asks again. */
async function removeLeftovers(options: LockOptions, own: Claim): Promise<void> {
  const { files, path } = options;
  for (const [id, names] of await claimsIn(options)) {
    if (id === own.id) continue;
    const rival = await rivalAt(options, id);
    if (rival !== null && !isOverridden(rival, options)) continue;
    // The socket last, as it says that the process named in the file has ended: this one may end in between.
    const [sockets, others] = [names.filter(isLockSocket), names.filter((name) => !isLockSocket(name))];
    for (const name of [...others, ...sockets]) await removeFile(files, join(dirname(path), name));
  }
}

function isOverridden({ standing }: Occupant, { force }: LockOptions): boolean {
  return force && standing !== "alive";
}

const UNSEEN: Readonly<Record<Exclude<Standing, "gone" | "alive">, string>> = {
  "on-another-machine": "whether that process still runs can't be seen from here",
  "in-another-namespace":
    "it has no socket and ran in another container, so whether it still runs can't be seen from here",
  "behind-permissions": "this user may not connect to its socket, so whether it still runs can't be seen",
};

async function inUse(occupant: Occupant, options: LockOptions): Promise<DirectoryError> {
  const { holder, standing, reach } = occupant;
  const advice = await adviceOn(occupant, options);
  const line = `the directory is in use by ${nameOf(holder, options.self)} (${options.path})${advice}`;
  return standing === "alive" && reach === "answers" ? new OpenElsewhereError(line) : new DirectoryError(line);
}

function nameOf(holder: LockHolder | null, self: ProcessIdentity): string {
  if (holder === null) return "a process that has not said which it is";
  const where = holder.boot === self.boot && isElsewhere(holder, self) ? " in another container" : "";
  return `process ${holder.pid} on ${holder.host}${where}`;
}

async function adviceOn({ holder, reach, standing }: Occupant, options: LockOptions): Promise<string> {
  const { files, path, force, self } = options;
  if (standing !== "alive")
    return `: ${UNSEEN[standing]}; once it certainly does not, --force-unlock takes its lock away`;
  if (reach === "missing" && holder?.socket != null)
    return withoutSocket(holder.pid, await hasJournalOpen(files, holder.pid, new Layout(dirname(path)).journal));
  if (force) return ": it runs on this machine, where --force-unlock overrides nobody; stop it first";
  return holder?.pid === self.pid ? ": that is this process; close the server there first" : ": it runs; stop it first";
}

const AWAY = ": it runs, but its socket is not here";

/** Of a process that runs. A repair or a backup, and a server that starts, may have no file of the journal open. */
function withoutSocket(pid: number, hasJournal: boolean | null): string {
  if (hasJournal === true) return ": it runs and has this directory open, though its socket was removed; stop it first";
  if (hasJournal === false) return `${AWAY}; in a copy of its directory, remove this file, and otherwise stop it first`;
  const look = `look whether it has this journal open (ls -l /proc/${pid}/fd | grep journal), and stop it if so`;
  return `${AWAY}; ${look}; only in a copy of its directory, remove this file`;
}
