import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/ops/clock.js";
import { startNode, type TestProcess, type TestScope } from "../helpers/process.js";

const ROOT = new URL("../../", import.meta.url);
const { scripts } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8")) as { readonly scripts: { readonly start: string } };
const BIN = fileURLToPath(new URL("bin/streamdir.js", ROOT));
/** What `npm start` gives Node: so is the server started here, and all that it is compared with. */
export const NODE_FLAGS: readonly string[] = scripts.start.split(" ").filter((word) => word.startsWith("--"));
const PROBE = new URL("../bench/memory-probe.mjs", import.meta.url).href;
const MIB_IN_KIB = 1024;
const MIB = 2 ** 20;
/** Of the system's clock for processes, in milliseconds: 100 ticks a second on all that Node runs on. */
const TICK_MS = 10;
const SAMPLE_MS = 50;

/** Memory of a process, in MiB: now, and the most since `watch` began. */
export interface Memory {
  readonly nowMiB: number;
  readonly peakMiB: number;
}

/** The built server as a process of its own, started as `npm start` does it, but for a free port. */
export class ServerUnderLoad {
  readonly port: number;
  /** From the start of the process until it serves. */
  readonly readyMs: number;
  readonly #process: TestProcess;
  readonly #pid: number;
  #collections = 0;

  /** Starts it on `dir`; `args` are added to its command line. */
  static start(scope: TestScope, dir: string, args: readonly string[] = []): Promise<ServerUnderLoad> {
    return ServerUnderLoad.#start(scope, dir, args, []);
  }

  /** The same with a probe in it, so that it can tell {@link inUseMiB}. */
  static startProbed(scope: TestScope, dir: string, args: readonly string[] = []): Promise<ServerUnderLoad> {
    return ServerUnderLoad.#start(scope, dir, args, ["--import", PROBE]);
  }

  static async #start(scope: TestScope, dir: string, args: readonly string[], nodeArgs: readonly string[]): Promise<ServerUnderLoad> {
    const startedMs = performance.now();
    const started = startNode(scope, [
      ...NODE_FLAGS,
      ...nodeArgs,
      BIN,
      dir,
      "--port",
      "0",
      "--log-format",
      "json",
      "--log-level",
      "debug",
      ...args,
    ]);
    const ready = JSON.parse(await started.stdoutLine(/"serving"/)) as { url: string };
    return new ServerUnderLoad(started, Number(new URL(ready.url).port), performance.now() - startedMs, pidIn(dir));
  }

  private constructor(started: TestProcess, port: number, readyMs: number, pid: number) {
    this.#process = started;
    this.port = port;
    this.readyMs = readyMs;
    this.#pid = pid;
  }

  /** Resident memory: what it is now, and the highest that it ever was. */
  memory(): Memory {
    const status = readFileSync(`/proc/${this.#pid}/status`, "utf8");
    return { nowMiB: fieldOf(status, "VmRSS") / MIB_IN_KIB, peakMiB: fieldOf(status, "VmHWM") / MIB_IN_KIB };
  }

  /** Memory that something in it holds, in MiB: what is left of the heap and of buffers after a collection. */
  async inUseMiB(): Promise<number> {
    this.#collections += 1;
    this.#process.kill("SIGUSR2");
    const line = await this.#process.stderrLine(/^bytes in use \d+$/, this.#collections);
    return Number(line.slice("bytes in use ".length)) / MIB;
  }

  /** Time that processors have spent on it so far, in milliseconds. */
  cpuMs(): number {
    return cpuTicksIn(readFileSync(`/proc/${this.#pid}/stat`, "utf8")) * TICK_MS;
  }

  /** Waits until `holds`, looking again and again, at most `limitMs`; returns how long it took, `null` when it never did. */
  async until(holds: () => boolean, limitMs: number): Promise<number | null> {
    const startedMs = performance.now();
    while (!holds()) {
      if (performance.now() - startedMs > limitMs) return null;
      await pause(SAMPLE_MS);
    }
    return performance.now() - startedMs;
  }

  /** The checkpoints that it has done so far. */
  checkpoints(): { readonly streams: number; readonly ms: number }[] {
    const lines = this.#process.stderrText().split("\n").slice(0, -1);
    return lines.filter((line) => line.includes('"msg":"checkpoint"')).map((line) => JSON.parse(line) as { streams: number; ms: number });
  }

  /** Ends it by `signal`; resolves to how long that took, in milliseconds. */
  async end(signal: NodeJS.Signals): Promise<number> {
    const startedMs = performance.now();
    this.#process.kill(signal);
    await this.#process.ended;
    return performance.now() - startedMs;
  }
}

/** Lets time pass: what is measured here is the machine's own. */
export function pause(ms: number): Promise<void> {
  const clock = systemClock();
  return new Promise((resolve) => clock.after(ms, () => resolve()));
}

function pidIn(dir: string): number {
  return (JSON.parse(readFileSync(`${dir}/lock`, "utf8")) as { pid: number }).pid;
}

/** Ticks in user and system mode, by the line of /proc/PID/stat; its second field may hold anything, but for a last `)`. */
function cpuTicksIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

function fieldOf(status: string, name: string): number {
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]);
}
