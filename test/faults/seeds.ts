import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A seed whose run breaks a promise. */
export interface FailedSeed {
  readonly seed: number;
  readonly says: string;
}

/**
 * What a seed decides: a history of the server; a directory, the harm that it comes to, and its repair; or a history of
 * several servers on one log.
 */
export type SeededRun = "history" | "damage" | "cluster";

/** Which seeds are run, and in how many processes at a time. */
export interface SeedsOptions {
  readonly run: SeededRun;
  readonly from: number;
  readonly count: number;
  readonly workers: number;
  /** Told after every few. */
  readonly progress?: (done: number, failed: number) => void;
  /** Told of each seed that fails, as soon as it does. */
  readonly failure?: (failed: FailedSeed) => void;
}

/** What a worker tells: some more are done, and these failed. */
export interface WorkerReport {
  readonly done: number;
  readonly failed: readonly FailedSeed[];
}

const WORKER = fileURLToPath(new URL("./seeds-worker.ts", import.meta.url));

/** Runs `count` seeds from `from` on; resolves to those that failed. Rejects when a worker dies. */
export async function runSeeds({ run, from, count, workers, progress, failure }: SeedsOptions): Promise<FailedSeed[]> {
  const failures: FailedSeed[] = [];
  let done = 0;
  const onReport = (report: WorkerReport): void => {
    done += report.done;
    failures.push(...report.failed);
    for (const failed of report.failed) failure?.(failed);
    progress?.(done, failures.length);
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => runWorker([run, from + worker, from + count, workers], onReport)));
  return failures.sort((left, right) => left.seed - right.seed);
}

function runWorker(args: readonly (string | number)[], onReport: (report: WorkerReport) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = fork(WORKER, args.map(String), { execArgv: ["--import", "tsx"], env: { ...process.env, NODE_V8_COVERAGE: "" } });
    child.on("message", onReport);
    child.on("error", reject);
    child.on("exit", (status, signal) => (status === 0 ? resolve() : reject(new Error(`a worker ended with ${signal ?? status}`))));
  });
}
