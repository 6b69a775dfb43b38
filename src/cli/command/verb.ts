// What the verbs of the command share: exit statuses, signals, and what they are run with.

import type { Settings } from "../../options.js";

/** The directory that is served when none is named. */
export const DEFAULT_DIR = "./data";

/** How long the end of a server waits for who reads its output. */
export const LAST_LINE_MS = 1000;

/** The exit statuses of the command. A second signal ends it with 128 + the signal's number instead. */
export const EXIT = {
  /** It did what it was asked. */
  done: 0,
  /** The directory or the port can't be used. */
  unusable: 1,
  /** The command line or the environment is wrong (`EX_USAGE`). */
  usage: 64,
  /** A client verb: the server, or the verb itself, refuses the data or what is asked for (`EX_DATAERR`). */
  refused: 65,
  /** There is no such stream (`EX_NOINPUT`). */
  missing: 66,
  /** The server can't be reached, or is none of streams (`EX_UNAVAILABLE`). */
  unreachable: 69,
  /** A fault of the program itself; what was acknowledged is recovered by the next start (`EX_SOFTWARE`). */
  crash: 70,
  /** The storage reported a fault; what was acknowledged is recovered by the next start (`EX_IOERR`). */
  fault: 74,
  /** The server can't do it now: try again later (`EX_TEMPFAIL`). */
  tryAgain: 75,
  /** The credential is missing or wrong, or has no right to it (`EX_NOPERM`). */
  noRight: 77,
} as const;

/** A signal that asks the command to stop. */
export type StopSignal = "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGTERM";

/** A signal that has no meaning here, but would end the process without a word if it were not handled. */
export type OtherSignal = "SIGALRM" | "SIGIO" | "SIGPWR" | "SIGSTKFLT" | "SIGUSR2" | "SIGVTALRM" | "SIGXCPU";

/** Standard output or standard error. */
export interface Output {
  readonly isTTY?: boolean;
  /** How wide a terminal is; 0 or absent where it does not say. */
  readonly columns?: number;
  /** Its descriptor, where it has one. */
  readonly fd?: number;
  /** `written` is called when the text has left the process, or with an error when it can't any more. */
  write(text: string | Buffer, written?: (error?: Error | null) => void): unknown;
}

/** Standard input. One that is not read to its end keeps the process alive until it is destroyed. */
export interface ClientInput extends AsyncIterable<Uint8Array> {
  /** Its descriptor, where it has one. */
  readonly fd?: number;
  destroy?(): unknown;
}

/** What a client verb uses of the process that it runs in. */
export interface ClientSurroundings extends Surroundings {
  /** Asked for only by verbs that read it. */
  readonly stdin: ClientInput;
}

/** What a verb uses of the process that it runs in; `process` is one. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  on(event: StopSignal, listener: (signal: StopSignal) => void): unknown;
  on(event: OtherSignal, listener: (signal: OtherSignal) => void): unknown;
  on(event: "uncaughtException", listener: (fault: unknown) => void): unknown;
  off(event: StopSignal, listener: (signal: StopSignal) => void): unknown;
  off(event: OtherSignal, listener: (signal: OtherSignal) => void): unknown;
  off(event: "uncaughtException", listener: (fault: unknown) => void): unknown;
  exit(status: number): void;
}

/** What a verb is run with. */
export interface Invocation {
  /** As it was written; relative to the working directory. */
  readonly dir: string;
  /** Whether nobody named a directory: then `dir` is {@link DEFAULT_DIR}. Absent where somebody did. */
  readonly isDirImplied?: true;
  /** The second path, of a verb that has one; as it was written. */
  readonly second?: string;
  readonly settings: Settings;
  /** The verb's own switches that were given, without their dashes. */
  readonly switches: ReadonlySet<string>;
  /** The values given to switches that take one, in order; absent when none was given. */
  readonly values?: ReadonlyMap<string, readonly string[]>;
  /** The version of the package. */
  readonly version: string;
}

/** A flag of one verb only. */
export interface Switch {
  /** Without its dashes. */
  readonly flag: string;
  /** What stands for its value in the help; it may be given several times. Absent where it takes none. */
  readonly value?: string;
  readonly help: string;
}

/** One thing that the command can do. */
export interface Verb {
  readonly name: string;
  /** What it does, for `--help`. */
  readonly summary: string;
  readonly switches?: readonly Switch[];
  /** What stands for the second path in the help, where it needs one; then the first can't be left out. */
  readonly second?: string;
  /** Whether the options of the server change what it does. */
  readonly takesOptions?: true;
  /** Resolves to the exit status. Rejects only on a fault of the program. */
  run(invocation: Invocation, surroundings: Surroundings): Promise<number>;
}
