import { resolve } from "node:path";
import { oneLine } from "../ops/log.js";
import { openOffline } from "../storage/file/offline.js";
import { DirectoryError } from "../storage/file/lock.js";
import { verifyDirectory, type Finding, type VerifyProgress, type VerifySummary } from "../storage/file/verify.js";
import { EXIT, type Invocation, type Output, type Surroundings } from "./verb.js";

/** At least this long between two changes of the progress line. */
const PROGRESS_MS = 100;

/**
 * Compares everything in a directory with its checksums and changes nothing: a line for each finding, then a summary.
 * Resolves to 0 when there is nothing to find, to 1 when there is or the directory can't be read.
 */
export async function verify({ dir, switches }: Invocation, { stdout, stderr }: Surroundings): Promise<number> {
  const asJson = switches.has("json");
  const progress = new ProgressLine(stderr);
  try {
    const directory = await openOffline(resolve(dir), switches.has("force-unlock"));
    const report = (finding: Finding): void => {
      progress.clear();
      stdout.write(`${asJson ? JSON.stringify(finding) : lineOf(finding)}\n`);
    };
    const summary = await verifyDirectory({ ...directory, report, progress: (state) => progress.show(state) });
    progress.clear();
    stdout.write(`${asJson ? JSON.stringify(summary) : summaryOf(summary)}\n`);
    return summary.findings === 0 ? EXIT.done : EXIT.unusable;
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error;
    stderr.write(`streamdir: ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
}

function lineOf({ stream, file, offset, problem }: Finding): string {
  const place = offset === null ? file : `${file} at byte ${offset}`;
  return oneLine(stream === null ? `${place}: ${problem}` : `stream ${JSON.stringify(stream)}: ${place}: ${problem}`);
}

function summaryOf({ streams, bytes, journalFiles, findings }: VerifySummary): string {
  const found = findings === 0 ? "nothing wrong" : `${findings} finding${findings === 1 ? "" : "s"}`;
  return `${found} in ${streams} streams, ${journalFiles} journal files, ${bytes} bytes`;
}

/** A line on a terminal that says how far the work is; nothing elsewhere. */
class ProgressLine {
  readonly #output: Output;
  #shownAtMs = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  show({ streams, done }: VerifyProgress): void {
    const nowMs = performance.now();
    if (this.#output.isTTY !== true || nowMs - this.#shownAtMs < PROGRESS_MS) return;
    this.#shownAtMs = nowMs;
    const bar = "#".repeat(Math.round(done * 30)).padEnd(30, ".");
    this.#output.write(`\r[${bar}] ${Math.floor(done * 100)}% ${streams} streams\u001b[K`);
  }

  clear(): void {
    if (this.#shownAtMs > 0) this.#output.write("\r\u001b[K");
  }
}
