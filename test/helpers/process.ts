import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** How a process ended, and everything it said. */
export interface Ended {
  /** `null` when a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that a test started. */
export interface TestProcess {
  readonly pid: number;
  /** The first whole line of standard output that matches, from the start; rejects when it ends without. */
  stdoutLine(pattern: RegExp): Promise<string>;
  /** The same of standard error; with `count`, the line that is so many times the first. */
  stderrLine(pattern: RegExp, count?: number): Promise<string>;
  /** What it has said on standard error so far. */
  stderrText(): string;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** Closes this end of its standard error, as a log reader does that dies. */
  leaveStderr(): void;
  /** Closes this end of its standard output, as `head` does. */
  leaveStdout(): void;
  /** Its standard input; `null` unless it was asked for. */
  readonly stdin: Writable | null;
}

/** Where a process is started. */
export interface StartOptions {
  readonly cwd?: string;
  /** Added to the environment of the test, which is passed without the variables of streamdir and npm. */
  readonly env?: Readonly<Record<string, string>>;
  /** A command that sets something up and then becomes Node, like `prlimit --nofile=64`. */
  readonly under?: readonly string[];
  /** Its standard input is what the test writes; without, there is none. */
  readonly hasInput?: boolean;
}

/** Whatever calls back when a test is over: a test context, or `node:test` itself for a whole file. */
export interface TestScope {
  after(run: () => Promise<void>): void;
}

const TSX = import.meta.resolve("tsx");
const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** Starts the command `streamdir` from source; it is killed when the test is over. */
export function startStreamdir(scope: TestScope, args: readonly string[], options: StartOptions = {}): TestProcess {
  const env = { UV_THREADPOOL_SIZE: "32", ...options.env }; // as bin/streamdir.js sets it
  return startNode(scope, ["--import", TSX, MAIN, ...args], { ...options, env });
}

/** Starts Node with `args`; it is killed when the test is over. */
export function startNode(scope: TestScope, args: readonly string[], { under = [], ...options }: StartOptions = {}): TestProcess {
  const [command = process.execPath, ...rest] = [...under, process.execPath, ...args];
  return startProgram(scope, command, rest, options);
}

/** Starts any program, by its path or its name; it is killed when the test is over. */
export function startProgram(
  scope: TestScope,
  command: string,
  args: readonly string[],
  { cwd, env, hasInput = false }: Omit<StartOptions, "under"> = {},
): TestProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(STREAMDIR_|npm_)/i.test(name));
  const settings = { cwd, env: { ...Object.fromEntries(inherited), ...env } };
  const child = hasInput
    ? spawn(command, args, { ...settings, stdio: ["pipe", "pipe", "pipe"] })
    : spawn(command, args, { ...settings, stdio: ["ignore", "pipe", "pipe"] });
  const stdout = new Transcript(child.stdout);
  const stderr = new Transcript(child.stderr);
  const ended = once(child, "close").then(([status, signal]): Ended => {
    stdout.end();
    stderr.end();
    return { status, signal, stdout: stdout.text, stderr: stderr.text };
  });
  scope.after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    pid: child.pid ?? 0,
    stdoutLine: (pattern) => stdout.line(pattern),
    stderrLine: (pattern, count) => stderr.line(pattern, count),
    stderrText: () => stderr.text,
    ended,
    kill: (signal) => void child.kill(signal),
    leaveStderr: () => void child.stderr.destroy(),
    leaveStdout: () => void child.stdout.destroy(),
    stdin: child.stdin,
  };
}

/** What a process has said so far on one of its outputs. */
class Transcript {
  text = "";
  #isOver = false;
  #look = new Set<() => void>();

  constructor(output: Readable) {
    output.setEncoding("utf8").on("data", (chunk: string) => {
      this.text += chunk;
      this.#lookAgain();
    });
  }

  end(): void {
    this.#isOver = true;
    this.#lookAgain();
  }

  line(pattern: RegExp, count = 1): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.text
          .split("\n")
          .slice(0, -1)
          .filter((line) => pattern.test(line))[count - 1];
        if (found === undefined && !this.#isOver) return;
        this.#look.delete(look);
        if (found !== undefined) resolve(found);
        else reject(new Error(`it ended without a line like ${pattern}; it said: ${JSON.stringify(this.text)}`));
      };
      this.#look.add(look);
      look();
    });
  }

  #lookAgain(): void {
    for (const look of [...this.#look]) look();
  }
}
