import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { CLIENT_VERBS } from "../../src/cli/client/client-verbs.js";
import { parseLoneTask } from "../../src/cli/command/task.js";
import type { ClientInput, Output, StopSignal } from "../../src/cli/command/verb.js";
import { createServer, type RunningServer, type ServerOptions } from "../../src/server.js";
import type { TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

/** How a verb ended, and what it printed. */
export interface ClientRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output to the byte. */
  readonly bytes: Buffer;
}

/** What a verb runs in. */
export interface ClientWorld {
  /** Where the server is. */
  readonly url: string;
  readonly stdin?: string | Buffer | ClientInput;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether standard error is one. */
  readonly isTerminal?: boolean;
  readonly isStdoutTerminal?: boolean;
  /** Called with what is written to standard output; an error is what the write fails with. */
  readonly onStdout?: (text: Buffer) => Error | null;
  /** Called with what is written to standard error. */
  readonly onStderr?: (text: Buffer) => null;
  /** What a write to standard output waits for. */
  readonly beforeWritten?: () => Promise<void>;
  /** Called with the way to send signals, before the verb runs. */
  readonly onStart?: (signal: (name: StopSignal) => void) => void;
  /** Called where the verb ends the process instead of itself; without it, none may. */
  readonly onExit?: (status: number) => void;
}

/** Runs a client verb in this process. */
export async function runClient(args: readonly string[], world: ClientWorld): Promise<ClientRun> {
  const task = CLIENT_VERBS.find(({ name }) => name === args[0]);
  assert.ok(task !== undefined, `${args[0]} is a verb`);
  const env = { STREAMDIR_URL: world.url, ...world.env };
  const command = parseLoneTask(task, args.slice(1), env);
  if (command.kind === "usage-error") return { status: 64, stdout: "", stderr: `streamdir: ${command.line}\n`, bytes: Buffer.alloc(0) };
  assert.ok(command.kind === "run");
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  const listeners = new Map<string, (signal: StopSignal) => void>();
  world.onStart?.((name) => listeners.get(name)?.(name));
  const surroundings = {
    env,
    stdin: inputOf(world.stdin ?? ""),
    stdout: outputTo(stdout, world.isStdoutTerminal === true, world.onStdout, world.beforeWritten),
    stderr: outputTo(stderr, world.isTerminal === true, world.onStderr),
    on: (event: string, listener: unknown) => listeners.set(event, listener as (signal: StopSignal) => void),
    off: (event: string) => listeners.delete(event),
    exit: (code: number) => (world.onExit ?? (() => assert.fail("it ends by itself")))(code),
  };
  const status = await task.run(command.given, surroundings);
  const bytes = Buffer.concat(stdout);
  return { status, stdout: bytes.toString(), stderr: Buffer.concat(stderr).toString(), bytes };
}

function inputOf(stdin: string | Buffer | ClientInput): ClientInput {
  return typeof stdin === "string" || Buffer.isBuffer(stdin) ? Readable.from(stdin.length === 0 ? [] : [Buffer.from(stdin)]) : stdin;
}

function outputTo(
  parts: Buffer[],
  isTTY: boolean,
  onWrite: (text: Buffer) => Error | null = () => null,
  before: () => Promise<void> = () => Promise.resolve(),
): Output {
  return {
    isTTY,
    write(text, written) {
      const bytes = Buffer.from(text);
      parts.push(bytes);
      const error = onWrite(bytes);
      setImmediate(() => void before().then(() => written?.(error)));
    },
  };
}

/** Makes verbs run against a server of this process, for all tests of a file. */
export class VerbServer {
  #server: RunningServer | null = null;
  #starting: Promise<RunningServer> | null = null;

  constructor(scope: TestScope, options: Partial<ServerOptions> = {}) {
    this.#starting = createServer({ dir: tempDir(), port: 0, longPollTimeoutMs: 500, ...options });
    scope.after(async () => (await this.#starting)?.close());
  }

  /** Where it is. */
  async url(): Promise<string> {
    this.#server ??= (await this.#starting) ?? null;
    return this.#server?.url ?? assert.fail("it has started");
  }

  /** Runs a verb. */
  async run(args: readonly string[], world: Partial<ClientWorld> = {}): Promise<ClientRun> {
    return runClient(args, { url: await this.url(), ...world });
  }

  /** Runs a verb that ends with 0 and says nothing beside its data. */
  async done(args: readonly string[], stdin: ClientWorld["stdin"] = ""): Promise<string> {
    const { status, stdout, stderr } = await this.run(args, { stdin });
    assert.deepEqual({ status, stderr }, { status: 0, stderr: "" }, args.join(" "));
    return stdout;
  }

  /** Appends a line and a half to a new stream, and sends SIGINT once the line is stored. */
  async interruptedAppend(name: string, more: readonly string[] = []): Promise<ClientRun> {
    let interrupt = (): void => {};
    const input = new Readable({ read: () => {} });
    input.push("kept\nhalf");
    const run = this.run(["append", name, "--lines", "--create", ...more], {
      stdin: input,
      onStart: (signal) => (interrupt = () => signal("SIGINT")),
    });
    for (let text = ""; text !== "kept\n";) text = (await this.run(["cat", name])).stdout;
    interrupt();
    return run;
  }
}
