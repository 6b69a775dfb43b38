import { FORMAT } from "../format/sidecar.js";
import type { DataDirectory } from "../directory/directory.js";

/** One change of format. */
export interface UpgradeStep {
  readonly from: number;
  /** One more than `from`. */
  readonly to: number;
  /** What it does, in a few words for whoever runs it. */
  readonly what: string;
  /** The files that it changes or removes, as paths below the directory: they are copied first. */
  readonly changes: (directory: DataDirectory) => AsyncIterable<string>;
  /**
   * Does it; what it did is permanent when it resolves. It may have been cut short anywhere before: doing it again
   * does the same. Files that it makes must not disturb a program of the format `from`, for whoever goes back.
   */
  readonly run: (directory: DataDirectory) => Promise<void>;
}

/** A format, and the steps that lead to it. */
export interface UpgradeTarget {
  readonly format: number;
  readonly steps: readonly UpgradeStep[];
}

/** What this version upgrades to. Format 1 is the first, so there is no step yet. */
export const UPGRADE_TARGET: UpgradeTarget = { format: FORMAT, steps: [] };

/** The steps from `format` to the target, in order; `null` when one is missing. */
export function stepsFrom(format: number, target: UpgradeTarget): UpgradeStep[] | null {
  const way: UpgradeStep[] = [];
  for (let at = format; at !== target.format; at += 1) {
    const step = target.steps.find(({ from, to }) => from === at && to === at + 1);
    if (step === undefined) return null;
    way.push(step);
  }
  return way;
}
