import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startNode, type TestScope } from "../helpers/process.js";
import { ServerUnderLoad } from "../scale/server-under-load.js";

const BIN = fileURLToPath(new URL("../../bin/streamdir.js", import.meta.url));
const MIB = 2 ** 20;

/** The settings of both servers: streams are trimmed and expire, and few stay in memory. */
export const SOAK_FLAGS: readonly string[] = [
  "--log-level=warn",
  "--retention-bytes=512KiB",
  "--segment-bytes=64KiB",
  "--journal-bytes=16MiB",
  "--max-loaded-streams=500",
];

/** The built server, and what the system says of its process and directory. */
export class SoakServer {
  readonly dir: string;
  readonly port: number;
  readonly #server: ServerUnderLoad;
  readonly #pid: number;

  private constructor(dir: string, server: ServerUnderLoad) {
    this.dir = dir;
    this.port = server.port;
    this.#server = server;
    this.#pid = (JSON.parse(readFileSync(join(dir, "lock"), "utf8")) as { pid: number }).pid; // as the lock has it
  }

  static async start(scope: TestScope, dir: string): Promise<SoakServer> {
    return new SoakServer(dir, await ServerUnderLoad.start(scope, dir, SOAK_FLAGS));
  }

  /** Memory, descriptors, and what the directory takes on disk. */
  async sample(): Promise<{ readonly memoryMiB: number; readonly descriptors: number; readonly diskMiB: number }> {
    const memoryMiB = this.#server.memory().nowMiB;
    const descriptors = readdirSync(`/proc/${this.#pid}/fd`).length;
    return { memoryMiB, descriptors, diskMiB: (await bytesOnDisk(this.dir)) / MIB };
  }

  async stop(): Promise<void> {
    await this.#server.end("SIGTERM");
  }
}

/** Runs `streamdir VERB ...` to its end; throws unless it succeeds. */
export async function streamdir(scope: TestScope, ...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await startNode(scope, [BIN, ...args]).ended;
  if (status !== 0) throw new Error(`streamdir ${args[0]} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

/** What a directory takes, with all below it. Files may go while they are counted, which du only complains of. */
function bytesOnDisk(dir: string): Promise<number> {
  return new Promise((resolve) => {
    execFile("du", ["-s", "--block-size=1", dir], (_complaint, stdout) => resolve(Number.parseInt(stdout, 10)));
  });
}
