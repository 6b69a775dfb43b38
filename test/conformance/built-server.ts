import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Over } from "./over.js";
import { RecordingProxy } from "./recording-proxy.js";

const READY = /https?:\/\/127\.0\.0\.1:\d+(?=\/v1\/stream\/)/;
const READY_WITHIN_MS = 20_000;
const STOPPED_WITHIN_MS = 20_000;

/** What the suite is told, and the server is: two of its tests wait a whole long-poll inside a limit of 5 s. */
export const LONG_POLL_TIMEOUT_MS = 1000;

/** The built server in a process of its own, on a directory of its own. */
export class BuiltServer {
  readonly #origin: string;
  readonly #recording: RecordingProxy | null;
  readonly #process: ChildProcess;
  readonly #said: string[];
  readonly #directory: string;
  #stopping: Promise<void> | null = null;

  private constructor(origin: string, recording: RecordingProxy | null, process: ChildProcess, said: string[], directory: string) {
    this.#origin = origin;
    this.#recording = recording;
    this.#process = process;
    this.#said = said;
    this.#directory = directory;
  }

  /** Starts the server and waits until it says where it listens. */
  static async start(): Promise<BuiltServer> {
    const directory = await mkdtemp(join(tmpdir(), "streamdir-conformance-"));
    const said: string[] = [];
    const over = Over.asked();
    const child = launch(directory, said, over?.flags(directory) ?? []);
    try {
      const origin = await readyLine(child, said);
      return new BuiltServer(origin, over === null ? await recordingOf(origin) : null, child, said, directory);
    } catch (fault) {
      child.kill("SIGKILL");
      await rm(directory, { recursive: true, force: true });
      throw fault;
    }
  }

  /** Where it answers. */
  get origin(): string {
    return this.#recording?.origin ?? this.#origin;
  }

  /** Sends SIGTERM; throws when the server does not end with status 0. A second call waits for the first. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const tooLate = setTimeout(() => this.#process.kill("SIGKILL"), STOPPED_WITHIN_MS);
    try {
      const running = this.#process.exitCode === null && this.#process.signalCode === null;
      if (running) {
        const exit = once(this.#process, "exit");
        this.#process.kill("SIGTERM");
        await exit;
      }
      const { exitCode, signalCode } = this.#process;
      if (!running || exitCode !== 0) {
        const when = running ? "on SIGTERM" : "before it was asked to";
        throw new Error(`the server ended ${when} with ${signalCode ?? `status ${exitCode}`}; it said:\n${this.#said.join("\n")}`);
      }
    } finally {
      clearTimeout(tooLate);
      await this.#recording?.stop();
      await rm(this.#directory, { recursive: true, force: true });
    }
  }
}

/** What notes the server's answers on their way, in the file that CONFORMANCE_RECORDING names. */
async function recordingOf(origin: string): Promise<RecordingProxy | null> {
  const file = process.env["CONFORMANCE_RECORDING"];
  return file === undefined ? null : RecordingProxy.start(Number(new URL(origin).port), file);
}

/** Starts the command and keeps the last lines that it says on either output. */
function launch(directory: string, said: string[], flags: readonly string[]): ChildProcess {
  // CONFORMANCE_BIN: the same tests against another server's command.
  const command = process.env["CONFORMANCE_BIN"] ?? fileURLToPath(new URL("../../bin/streamdir.js", import.meta.url));
  const args = [command, join(directory, "data"), "--port", "0", "--long-poll-timeout", `${LONG_POLL_TIMEOUT_MS}ms`, ...flags];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STREAMDIR_")));
  // CONFORMANCE_NODE: the server on another version of Node than the suite.
  const child = spawn(process.env["CONFORMANCE_NODE"] ?? process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on("line", (line) => {
      said.push(line);
      if (said.length > 50) said.shift();
    });
  }
  return child;
}

/** The origin that the server's ready line names. */
function readyLine(child: ChildProcess, said: string[]): Promise<string> {
  const { stdout } = child;
  if (stdout === null) throw new Error("the server's standard output is not a pipe");
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the server ${why}; it said:\n${said.join("\n")}`));
    const tooLate = setTimeout(() => fail(`was not ready within ${READY_WITHIN_MS} ms`), READY_WITHIN_MS);
    child.once("close", (status) => {
      clearTimeout(tooLate);
      fail(`ended with status ${status} before it was ready`);
    });
    createInterface({ input: stdout }).on("line", (line) => {
      const origin = READY.exec(line)?.[0];
      if (origin === undefined) return;
      clearTimeout(tooLate);
      resolve(origin);
    });
  });
}
