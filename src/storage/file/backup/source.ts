import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import type { Clock } from "../../../ops/clock.js";
import type { Conversation } from "../../../ops/control.js";
import type { Log } from "../../../ops/log.js";
import { explainUnusable } from "../directory/directory.js";
import { decodeHolder } from "../directory/lock-holder.js";
import { DirectoryError, lockDirectory, watchUnlocked } from "../directory/lock.js";
import { errorCode, readWhole, type SystemFiles } from "../disk/files.js";
import type { Layout } from "../format/layout.js";

/** A directory that keeps still as far as a backup needs it. */
export interface Source {
  /** Whether a server has it open. */
  readonly isServed: boolean;
  /** The batch up to which the journal is to be copied, by now; `null` where nothing is added to it. */
  batch(): Promise<number | null>;
  /** Throws where it is known not to keep still any more. */
  assertPinned(): void;
  /** Finds out; what was seen before is from a time when it kept still. */
  confirm(): Promise<void>;
  close(): Promise<void>;
}

/** Where a source is, and how its lock is taken when nobody has it. */
export interface SourceOptions {
  readonly files: SystemFiles;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  readonly force: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the conversation with its server. */
  readonly stop: AbortSignal;
}

/** The server gave up what it kept for the backup: what was copied so far counts, and the rest can be tried again. */
export class PinLostError extends Error {
  override readonly name = "PinLostError";
}

/** What another backup hears while one has the directory without a server. */
const BUSY: ReadonlyMap<string, Conversation> = new Map([
  ["backup", (speaker) => (speaker.end({ error: "backup-running" }), null)],
]);

/** How long the server may take for an answer, in seconds. */
const ANSWER_SECONDS = 30;

/** Pins the directory with the server that has it open; without one, takes its lock. Throws {@link DirectoryError}. */
export async function openSource(options: SourceOptions): Promise<Source> {
  const { files, layout, force, log } = options;
  try {
    const holder = await connectToHolder(files, layout);
    if (holder !== null) return await PinnedServer.begin(holder, options);
    const unlock = await lockDirectory(files, layout.lock, { force, log, conversations: BUSY });
    return unservedSource(() => Promise.resolve(), unlock);
  } catch (error) {
    if (errorCode(error) !== "EROFS") throw explainUnusable(layout.root, error);
    // Nobody here can open it either, but somebody elsewhere may.
    return unservedSource(await watchUnlocked(files, layout, force), () => Promise.resolve());
  }
}

function unservedSource(confirm: Source["confirm"], close: Source["close"]): Source {
  return { isServed: false, batch: () => Promise.resolve(null), assertPinned: () => undefined, confirm, close };
}

/** A connection to the process that has the directory open. */
interface Holder {
  readonly connection: Socket;
  readonly pid: number;
}

/** `null` where nobody listens: whether somebody has the directory all the same is found out by taking its lock. */
async function connectToHolder(files: SystemFiles, layout: Layout): Promise<Holder | null> {
  const bytes = await readWhole(files, layout.lock);
  const holder = bytes === null ? null : decodeHolder(bytes);
  if (holder === null || holder.socket === null) return null;
  try {
    return { connection: await files.connect(join(dirname(layout.lock), holder.socket)), pid: holder.pid };
  } catch (error) {
    if (["ECONNREFUSED", "ENOENT", "EACCES", "EPERM", "ENOTDIR"].includes(errorCode(error))) return null;
    throw error;
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  starting: "its server is still starting: try again in a moment",
  "backup-running": "another backup of it is under way",
  "unknown-command": "what has it open knows no backups: a repair, or a server of an earlier version",
};

/** A conversation with the server that has the directory open. */
class PinnedServer implements Source {
  readonly isServed = true;
  readonly #connection: Socket;
  readonly #pid: number;
  readonly #root: string;
  readonly #clock: Clock;
  readonly #lines: object[] = [];
  #waiting: (() => void) | null = null;
  #hasEnded = false;
  /** The conversation was ended because no answer came. */
  #isSilent = false;
  /** Why the server ended the conversation, as it says; `null` while it has not. */
  #error: string | null = null;

  static async begin(holder: Holder, options: SourceOptions): Promise<PinnedServer> {
    const { layout, directoryId } = options;
    const server = new PinnedServer(holder, options);
    try {
      const greeting = await server.#answer();
      if (!("protocol" in greeting) || greeting.protocol !== 1)
        throw new DirectoryError(`${layout.root}: its server speaks another protocol than this version`);
      const pinned = await server.#ask("backup");
      if (!("pinned" in pinned) || pinned.pinned !== directoryId.toString("hex"))
        throw new DirectoryError(`${layout.root}: its server has another directory open`);
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  private constructor({ connection, pid }: Holder, { layout, clock, stop }: SourceOptions) {
    this.#connection = connection;
    this.#pid = pid;
    this.#root = layout.root;
    this.#clock = clock;
    let rest = "";
    connection.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#heard(line);
    });
    connection.on("error", () => connection.destroy());
    const onStop = (): void => void connection.destroy();
    stop.addEventListener("abort", onStop);
    connection.once("close", () => {
      stop.removeEventListener("abort", onStop);
      this.#hasEnded = true;
      this.#wake();
    });
  }

  async batch(): Promise<number> {
    const answer = await this.#ask("batch");
    if (!("batch" in answer) || typeof answer.batch !== "number")
      throw new DirectoryError(`${this.#root}: its server gave an answer that this version does not know`);
    return answer.batch;
  }

  async confirm(): Promise<void> {
    await this.batch();
  }

  assertPinned(): void {
    if (this.#error === "journal-room" || this.#error === "disk-full") throw new PinLostError(this.#error);
    if (this.#error !== null && this.#error !== "stopping")
      throw new DirectoryError(`${this.#root}: ${REFUSALS[this.#error] ?? `its server says ${this.#error}`}`);
    if (this.#isSilent) {
      const what = `its server (process ${this.#pid}) has not answered for ${ANSWER_SECONDS} s`;
      throw new DirectoryError(`${this.#root}: ${what}`);
    }
    if (this.#error !== null || this.#hasEnded)
      throw new DirectoryError(`${this.#root}: its server ended meanwhile: run the backup again`);
  }

  async close(): Promise<void> {
    if (this.#hasEnded) return;
    const closed = new Promise<void>((resolve) => this.#connection.once("close", () => resolve()));
    this.#connection.destroy();
    await closed;
  }

  #ask(command: string): Promise<object> {
    this.#connection.write(`${JSON.stringify({ command })}\n`);
    return this.#answer();
  }

  async #answer(): Promise<object> {
    const deadline = this.#clock.after(ANSWER_SECONDS * 1000, () => {
      this.#isSilent = true;
      this.#connection.destroy();
    });
    try {
      while (this.#lines.length === 0 && !this.#hasEnded && this.#error === null)
        await new Promise<void>((resolve) => (this.#waiting = resolve));
    } finally {
      deadline.cancel();
    }
    const line = this.#lines.shift();
    if (line === undefined) this.assertPinned();
    return line ?? {};
  }

  #heard(line: string): void {
    const value: unknown = parsed(line);
    if (typeof value !== "object" || value === null) this.#error = "something else";
    else if ("error" in value) this.#error = String(value.error);
    else this.#lines.push(value);
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.();
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Whoever listens there is no server of ours.
    return null;
  }
}
