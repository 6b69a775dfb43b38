import type { DataDirectory } from "../directory/directory.js";
import { DirectoryError } from "../directory/lock.js";
import { findMarker, replaceMarker, type Marker } from "../directory/marker.js";
import type { Files } from "../disk/files.js";
import { formerFilesPath, type Layout } from "../format/layout.js";
import { amountOf, keepFormerFiles } from "./former-files.js";
import { stepsFrom, type UpgradeStep, type UpgradeTarget } from "./upgrade-steps.js";

/** A directory to be upgraded, whose lock is held, or which nobody has open where nothing is applied. */
export interface UpgradeOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly target: UpgradeTarget;
  /** Does it; else it is only said what would be done. */
  readonly apply: boolean;
  /** Hears, a line at a time, what is to be done and what was done. */
  readonly say: (line: string) => void;
}

/**
 * Brings a directory to the target's format, a step at a time. The marker is the order of it: while a step runs, it
 * names the format that is to come, and no version takes the directory; it names a format as reached once all that the
 * step did is permanent. Before a step's first change the files that it changes are copied. Cut short anywhere, by
 * whatever, it is run again. Throws {@link DirectoryError}.
 */
export async function upgradeDirectory({ files, layout, target, apply, say }: UpgradeOptions): Promise<void> {
  let marker = await markerIn(files, layout, target);
  const steps = stepsFrom(marker.format, target);
  if (steps === null) {
    const { format } = marker;
    throw new DirectoryError(`${layout.root} has format ${format}: no upgrade leads from there to ${target.format}`);
  }
  if (steps.length === 0) return say(`nothing to do: ${layout.root} has format ${target.format}, that of this version`);
  const directory: DataDirectory = { files, layout, directoryId: marker.directoryId };
  for (const step of steps) say(await planOf(directory, step, marker));
  if (!apply) return;
  for (const step of steps) {
    marker = await takeStep(directory, step, marker);
    const former = formerFilesPath(layout, step.to);
    say(`done: the directory has format ${step.to}; the files as they were are in ${former}`);
  }
}

async function markerIn(files: Files, layout: Layout, { format }: UpgradeTarget): Promise<Marker> {
  const marker = await findMarker(files, layout, format);
  if (marker === null)
    throw new DirectoryError(`${layout.root} is not a data directory of streamdir: ${layout.marker} is missing`);
  if (marker.upgradingTo !== null && marker.upgradingTo > format) {
    throw new DirectoryError(
      `an upgrade of ${layout.root} to format ${marker.upgradingTo} was cut short; this version knows format ` +
        `${format}: run that of the newer version again`,
    );
  }
  return marker;
}

async function planOf(directory: DataDirectory, step: UpgradeStep, { upgradingTo }: Marker): Promise<string> {
  const formats = `format ${step.from} to ${step.to}`;
  const former = formerFilesPath(directory.layout, step.to);
  if (upgradingTo === step.to)
    return `to do: ${formats}, which was cut short: ${step.what}; the files as they were are in ${former}`;
  const { files, bytes } = await amountOf(directory, step);
  return `to do: ${formats}: ${step.what}; first ${files} files, ${bytes} bytes, are copied to ${former}`;
}

/** Takes one step; resolves to the marker then. Each of its four parts is permanent before the next begins. */
async function takeStep(directory: DataDirectory, step: UpgradeStep, marker: Marker): Promise<Marker> {
  const { files, layout } = directory;
  // A step that was cut short may have changed files: those that were kept then are the former ones.
  if (marker.upgradingTo !== step.to) {
    await keepFormerFiles(directory, step);
    await replaceMarker(files, layout, { ...marker, upgradingTo: step.to });
  }
  await step.run(directory);
  const reached = { ...marker, format: step.to, upgradingTo: null };
  await replaceMarker(files, layout, reached);
  return reached;
}
