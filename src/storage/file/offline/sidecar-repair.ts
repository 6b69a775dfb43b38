import { sidecarPath } from "../format/layout.js";
import { encodeSidecar, type Sidecar } from "../format/sidecar.js";
import type { ForkRelations } from "../survey/fork-relations.js";
import { surveyKept, type Survey } from "../survey/journal-survey.js";
import { checkStream, type CheckedStream } from "../survey/stream-check.js";
import { StreamFactFinder } from "../survey/stream-facts.js";
import { isStale, isToldOnly, knownOf, type Journals } from "./lost-sidecar.js";
import { relativesOf } from "./relatives.js";
import type { RepairSteps } from "./repair-steps.js";
import { mendSidecar } from "./sidecar-mending.js";
import { rebuildSidecar } from "./sidecar-rebuild.js";

/** What one look at all streams told. */
export interface Gathered {
  readonly facts: StreamFactFinder;
  readonly relations: ForkRelations;
  /** Directories without a sound sidecar. */
  readonly lost: readonly string[];
}

/** A stream whose sidecar can't be put back, and in words why. */
interface Unrepaired {
  readonly checked: CheckedStream;
  readonly problem: string;
}

/**
 * Puts lost sidecars back, for as long as one that is back may tell more of the others; returns those that can't be,
 * and in words why.
 */
export async function repairSidecars(
  steps: RepairSteps,
  { facts, relations, lost }: Gathered,
  { lastBatch }: Survey,
): Promise<readonly Unrepaired[]> {
  const aside = await surveyKept(steps.options);
  const kept = new StreamFactFinder(steps.options, aside).present;
  for (let waiting = lost.filter((directory) => !isToldOnly(kept.get(directory), aside)); ;) {
    const left: Unrepaired[] = [];
    for (const directory of waiting) {
      const checked = await checkStream(steps.options, directory);
      const journals = { present: facts.present.get(directory), kept: kept.get(directory), lastBatch };
      const put = await repairSidecar(steps, checked, journals, waiting.length === 1);
      const known = typeof put === "string" ? null : facts.factsIn(directory, put);
      if (typeof put === "string") left.push({ checked, problem: put });
      else if (known !== null) relations.note(known);
    }
    if (left.length === 0 || left.length === waiting.length) return left;
    waiting = left.map(({ checked }) => checked.directory);
  }
}

/** Resolves to the sidecar that is there now, or says in words why there is none. */
async function repairSidecar(
  steps: RepairSteps,
  checked: CheckedStream,
  journals: Journals,
  isOnlyLost: boolean,
): Promise<Sidecar | string> {
  const { directory, sidecarBytes, sidecarState, sidecarProblem } = checked;
  const mended = sidecarBytes === null ? null : mendSidecar(sidecarBytes);
  if (mended !== null && steps.options.layout.streamDirectory(mended.sidecar.name) === directory) {
    if (isStale(mended.sidecar, journals.present)) return setClaimAside(steps, directory, mended.sidecar);
    const byte = `put byte ${mended.offset} right, the only one whose change makes the checksum match`;
    return putSidecar(steps, checked, mended.sidecar, mended.bytes, `${byte}; the damaged file is kept`);
  }
  if (sidecarState === "final" || sidecarState === "unreadable") return String(sidecarProblem);
  const rebuilt = await rebuild(steps, checked, journals, isOnlyLost);
  return typeof rebuilt === "string" ? `${sidecarProblem}, and can't be made anew: ${rebuilt}` : rebuilt;
}

/** Resolves to words where it can't be done. */
async function rebuild(
  steps: RepairSteps,
  checked: CheckedStream,
  journals: Journals,
  isOnlyLost: boolean,
): Promise<Sidecar | string> {
  const journaled = knownOf(checked, journals);
  if (journaled === null)
    return "records of a stream of this name were set aside, and nobody can tell whether they are its own";
  const relatives = relativesOf(steps.relations, isOnlyLost, checked, journaled);
  if (typeof relatives === "string") return relatives;
  const rebuilt = await rebuildSidecar(steps.options, checked, journaled, relatives);
  if (typeof rebuilt === "string") return rebuilt;
  const sidecar = journaled === undefined ? { ...rebuilt.sidecar, batch: journals.lastBatch } : rebuilt.sidecar;
  const extent = sidecar.claimed ? "" : ` with ${sidecar.state.tail} bytes`;
  const what = `${checked.sidecarProblem}: make it anew${extent}; ${rebuilt.unknown}`;
  return putSidecar(steps, checked, sidecar, encodeSidecar(sidecar), what);
}

async function putSidecar(
  steps: RepairSteps,
  checked: CheckedStream,
  sidecar: Sidecar,
  bytes: Buffer,
  what: string,
): Promise<Sidecar> {
  const { directory } = checked;
  if (!steps.options.apply) steps.planned.set(directory, sidecar);
  steps.knownBatch = Math.max(steps.knownBatch, sidecar.batch);
  await steps.take(sidecar.name, sidecarPath(directory), what, () => steps.replaceSidecar(checked, bytes));
  return sidecar;
}

/** Sets the directory aside of a stream that was never created. */
export async function setClaimAside(steps: RepairSteps, directory: string, sidecar: Sidecar): Promise<Sidecar> {
  const what = "set it aside: it was taken for a stream that was never created";
  await steps.take(sidecar.name, directory, what, () => steps.quarantine.move(directory));
  return sidecar;
}
