import { resolve } from "node:path";
import { oneLine, visibleJson } from "../ops/log.js";
import { explainUnusable } from "../storage/file/directory/directory.js";
import { openOffline } from "../storage/file/offline/offline.js";
import { DirectoryError, OpenElsewhereError } from "../storage/file/directory/lock.js";
import { verifyDirectory, type Finding, type VerifySummary } from "../storage/file/offline/verify.js";
import { ProgressLine } from "./progress-line.js";
import { EXIT, type Invocation, type Surroundings } from "./command/verb.js";

/** A server that can't be stopped lets a backup have all that it holds. */
const INSTEAD = ", or verify what streamdir backup DIR COPY makes of it meanwhile";

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
      stdout.write(`${asJson ? visibleJson(finding) : lineOf(finding)}\n`);
    };
    const summary = await verifyDirectory({ ...directory, report, progress: (state) => progress.show(state) });
    progress.clear();
    stdout.write(`${asJson ? visibleJson(summary) : summaryOf(summary)}\n`);
    return summary.findings === 0 ? EXIT.done : EXIT.unusable;
  } catch (thrown) {
    progress.clear();
    const error = explainUnusable(resolve(dir), thrown);
    if (!(error instanceof DirectoryError)) throw error;
    const instead = error instanceof OpenElsewhereError ? INSTEAD : "";
    stderr.write(`streamdir: ${oneLine(error.message)}${instead}\n`);
    return EXIT.unusable;
  }
}

function lineOf({ stream, file, offset, problem }: Finding): string {
  const place = offset === null ? file : `${file} at byte ${offset}`;
  return oneLine(stream === null ? `${place}: ${problem}` : `stream ${JSON.stringify(stream)}: ${place}: ${problem}`);
}

function summaryOf({ streams, bytes, journalFiles, findings, notes }: VerifySummary): string {
  const found = findings === 0 ? "nothing wrong" : `${findings} finding${findings === 1 ? "" : "s"}`;
  const counts = `${found} in ${streams} streams, ${journalFiles} journal files, ${bytes} bytes`;
  return [counts, ...notes.map((note) => oneLine(`note: ${note}`))].join("\n");
}
