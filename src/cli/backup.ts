// The verb `backup`: copies a directory, whether or not a server has it open.

import { resolve } from "node:path";
import { systemClock } from "../ops/clock.js";
import { createLog, oneLine } from "../ops/log.js";
import { backUp, type BackupSummary } from "../storage/file/backup/backup.js";
import type { Trouble } from "../storage/file/backup/tally.js";
import { DirectoryError } from "../storage/file/directory/lock.js";
import { systemFiles, withheldBy } from "../storage/file/disk/files.js";
import { ProgressLine } from "./progress-line.js";
import { listenForStop, SIGNAL_EXIT } from "./command/stop-signals.js";
import { EXIT, type Invocation, type StopSignal, type Surroundings } from "./command/verb.js";

const STOP_SIGNALS: readonly StopSignal[] = ["SIGHUP", "SIGINT", "SIGTERM"];

/**
 * Resolves to 0 when the backup is complete; to 1 when it could not be made, or has what is damaged in the
 * directory, too; to 128 + its number when a signal ended it.
 */
export async function backup({ dir, second = "", switches }: Invocation, surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  const progress = new ProgressLine(stderr);
  const tell = (line: string): void => {
    progress.clear();
    stderr.write(`${oneLine(line)}\n`);
  };
  const stop = new AbortController();
  let stopStatus: number | null = null;
  // Gives the locks back: one that root leaves would keep the directory from its own user.
  const signals = listenForStop(surroundings, systemClock(), STOP_SIGNALS, (signal) => {
    stopStatus = SIGNAL_EXIT[signal];
    stop.abort(new DirectoryError(`the backup was ended by ${signal}: run it again`));
  });
  try {
    const summary = await backUp({
      dir: resolve(dir),
      dest: resolve(second),
      // Who may not read the directory may not read its copy.
      files: systemFiles(true, await withheldBy(resolve(dir))),
      force: switches.has("force-unlock"),
      clock: systemClock(),
      log: createLog({ level: "warn", format: "text", write: tell }),
      report: (trouble) => tell(lineOf(trouble)),
      progress: (state) => progress.show(state),
      stop: stop.signal,
    });
    progress.clear();
    stdout.write(`${summaryOf(summary)}\n`);
    return summary.troubles === 0 ? EXIT.done : EXIT.unusable;
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error;
    tell(`streamdir: ${error.message}`);
    return stopStatus ?? EXIT.unusable;
  } finally {
    signals.release();
    progress.clear();
  }
}

function lineOf({ stream, file, problem }: Trouble): string {
  return `${stream === null ? "" : `stream ${JSON.stringify(stream)}: `}${file}: ${problem}`;
}

function summaryOf({ tally, troubles }: BackupSummary): string {
  const { copiedBytes, linkedBytes, keptBytes, journalBytes } = tally;
  const streams = `${tally.streams} streams with files, ${tally.changedStreams} of them new or changed`;
  const bytes = `${copiedBytes} bytes copied, ${linkedBytes} linked, ${keptBytes} there already`;
  const journal = `${journalBytes} of the journal, which has the rest`;
  const damage = troubles === 0 ? "" : `; ${troubles} damaged in the directory, and so perhaps in the backup`;
  return `${streams}, ${tally.removedStreams} removed; ${bytes}, ${journal}${damage}`;
}
