import { resolve } from "node:path";
import { systemClock } from "../ops/clock.js";
import { createLog, oneLine, visibleJson } from "../ops/log.js";
import { explainUnusable } from "../storage/file/directory/directory.js";
import { DirectoryError, lockDirectory } from "../storage/file/directory/lock.js";
import { assertOwner } from "../storage/file/directory/owner.js";
import { openOffline } from "../storage/file/offline/offline.js";
import { repairDirectory, type RepairLine, type RepairSummary } from "../storage/file/offline/repair.js";
import { EXIT, type Invocation, type Surroundings } from "./command/verb.js";

/**
 * Says what is safe to do about a damaged directory, and with `--yes` does it: a line for each thing, then a summary.
 * `--accept-loss NAME` serves a stream again that is refused because it may have lost its end. Resolves to 0 when there
 * was nothing to do, or all was done and nothing that was acknowledged is out of reach; else 1.
 */
export async function repair({ dir, switches, values }: Invocation, { stdout, stderr }: Surroundings): Promise<number> {
  const root = resolve(dir);
  const force = switches.has("force-unlock");
  const apply = switches.has("yes");
  const asJson = switches.has("json");
  const acceptLoss = values?.get("accept-loss") ?? [];
  const log = createLog({ level: "warn", format: "text", write: (line) => void stderr.write(`${line}\n`) });
  try {
    const directory = await openOffline(root, force);
    if (apply) await assertOwner(directory.layout);
    const unlock = apply ? await lockDirectory(directory.files, directory.layout.lock, { force, log }) : null;
    try {
      const say = (line: RepairLine): void => void stdout.write(`${asJson ? visibleJson(line) : lineOf(line)}\n`);
      const nowMs = systemClock().nowMs();
      const summary = await repairDirectory({ ...directory, apply, acceptLoss, nowMs, log, say });
      stdout.write(`${asJson ? visibleJson(summary) : summaryOf(summary, apply)}\n`);
      return summary.toDo + summary.left === 0 ? EXIT.done : EXIT.unusable;
    } finally {
      await unlock?.();
    }
  } catch (thrown) {
    const error = explainUnusable(root, thrown);
    if (!(error instanceof DirectoryError)) throw error;
    stderr.write(`streamdir: ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
}

function lineOf({ kind, stream, file, what }: RepairLine): string {
  return oneLine(`${kind}: ${stream === null ? "" : `stream ${JSON.stringify(stream)}: `}${file}: ${what}`);
}

function summaryOf({ done, toDo, left }: RepairSummary, apply: boolean): string {
  if (done + toDo + left === 0) return "nothing to repair";
  const rest = left === 0 ? "nothing is left" : `${left} left for you: docs/repair.md says what to do`;
  return apply ? `${done} done, ${rest}` : `${toDo} to do with --yes, ${rest}`;
}
