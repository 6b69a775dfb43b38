import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { startNode, type TestProcess, type TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const BIN = fileURLToPath(new URL("../../bin/streamdir.js", import.meta.url));

/** The built server as a process of its own, with the defaults that a user gets; it ends with the test file. */
export class Server {
  readonly origin: string;
  readonly #dir: string;
  readonly #scope: TestScope;
  #process: TestProcess;

  private constructor(dir: string, scope: TestScope, started: Started) {
    this.#dir = dir;
    this.#scope = scope;
    this.#process = started.process;
    this.origin = started.origin;
  }

  /** Starts it on a free port and a new directory; resolves when it serves. To be called outside of any test. */
  static async start(): Promise<Server> {
    const dir = tempDir();
    const ends: (() => Promise<void>)[] = [];
    // One hook of the file for all processes: a hook that is set while a test runs would end with that test.
    after(async () => void (await Promise.all(ends.map((end) => end()))));
    const scope = { after: (end: () => Promise<void>) => void ends.push(end) };
    return new Server(dir, scope, await launch(scope, dir, "0"));
  }

  /** The address of the stream of that name. */
  urlOf(name: string): string {
    return `${this.origin}/v1/stream/${name}`;
  }

  /** Kills the process as a power cut does, and starts another on the same directory and port. */
  async killAndRestart(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.ended;
    this.#process = (await launch(this.#scope, this.#dir, new URL(this.origin).port)).process;
  }
}

interface Started {
  readonly process: TestProcess;
  readonly origin: string;
}

async function launch(scope: TestScope, dir: string, port: string): Promise<Started> {
  const process = startNode(scope, [BIN, dir, "--port", port]);
  const ready = await process.stdoutLine(/http:/);
  return { process, origin: new URL(/http:[^\s"]+/.exec(ready)?.[0] ?? "").origin };
}
