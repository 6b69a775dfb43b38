import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const READY = /https?:\/\/127\.0\.0\.1:\d+(?=\/v1\/stream\/)/;
const READY_WITHIN_MS = 20_000;
const STOPPED_WITHIN_MS = 20_000;

/** The command in a process of its own. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #said: string[] = [];

  /** Starts it on a free port. */
  constructor(flags: readonly string[], folder: string) {
    // CONFORMANCE_BIN: the same tests against another server's command.
    const command = process.env["CONFORMANCE_BIN"] ?? fileURLToPath(new URL("../../bin/streamdir.js", import.meta.url));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STREAMDIR_")));
    const args = [command, "serve", "--port", "0", ...flags];
    const child = spawn(process.execPath, args, { env, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        this.#said.push(line);
        if (this.#said.length > 50) this.#said.shift();
      });
    }
  }

  /** The origin that the ready line names. */
  ready(): Promise<string> {
    const { stdout } = this.#child;
    if (stdout === null) throw new Error("the server's standard output is not a pipe");
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`the server ${why}; it said:\n${this.#said.join("\n")}`));
      const tooLate = setTimeout(() => fail(`was not ready within ${READY_WITHIN_MS} ms`), READY_WITHIN_MS);
      this.#child.once("close", (status) => {
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

  /** Kills it with -9. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Sends SIGTERM; throws when it does not end with status 0. */
  async stop(): Promise<void> {
    const tooLate = setTimeout(() => this.kill(), STOPPED_WITHIN_MS);
    try {
      const running = this.#child.exitCode === null && this.#child.signalCode === null;
      if (running) {
        const exit = once(this.#child, "exit");
        this.#child.kill("SIGTERM");
        await exit;
      }
      const { exitCode, signalCode } = this.#child;
      if (running && exitCode === 0) return;
      const when = running ? "on SIGTERM" : "before it was asked to";
      throw new Error(`the server ended ${when} with ${signalCode ?? `status ${exitCode}`}; it said:\n${this.#said.join("\n")}`);
    } finally {
      clearTimeout(tooLate);
    }
  }
}
