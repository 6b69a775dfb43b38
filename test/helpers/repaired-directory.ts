import { openOffline } from "../../src/storage/file/offline/offline.js";
import { repairDirectory, type RepairLine, type RepairSummary } from "../../src/storage/file/offline/repair.js";
import { verifyDirectory, type Finding } from "../../src/storage/file/offline/verify.js";
import { keptLog, loaded, readAll, type Engine } from "./engine.js";

/** What a repair said: a line for each step, and how many of each kind. */
export interface Repaired {
  readonly lines: string[];
  readonly summary: RepairSummary;
}

/** Repairs a directory, or says what it would do; `acceptLoss` are the names or patterns of streams that may lose what is lost. */
export async function repair(dir: string, apply = true, acceptLoss: readonly string[] = []): Promise<Repaired> {
  const lines: string[] = [];
  const say = ({ kind, stream, file, what }: RepairLine): void =>
    void lines.push(`${kind}: ${stream ?? ""}: ${file.slice(dir.length + 1)}: ${what}`);
  const directory = await openOffline(dir, false);
  const summary = await repairDirectory({ ...directory, apply, acceptLoss, nowMs: 1234, log: keptLog().log, say });
  return { lines, summary };
}

/** What `verify` finds in a directory, a line for each. */
export async function findings(dir: string): Promise<string[]> {
  const found: string[] = [];
  const report = ({ stream, file, problem }: Finding): void =>
    void found.push(`${stream ?? ""}: ${file.slice(dir.length + 1)}: ${problem}`);
  await verifyDirectory({ ...(await openOffline(dir, false)), report, progress: () => undefined });
  return found;
}

/** All that the stream of this name has, as text. */
export async function textOf({ storage }: Engine, name: string): Promise<string> {
  return (await readAll(storage, await loaded(storage, name))).toString();
}
