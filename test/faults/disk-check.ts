import { dirname } from "node:path";
import { readMarker } from "../../src/storage/file/directory.js";
import type { Files } from "../../src/storage/file/files.js";
import { Layout, segmentStartOf, sidecarPath } from "../../src/storage/file/layout.js";
import { DirectoryError } from "../../src/storage/file/lock.js";
import { decodeSidecar } from "../../src/storage/file/sidecar.js";
import { verifyDirectory, type Finding } from "../../src/storage/file/verify.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";
import { must } from "./model.js";
import type { Name } from "./names.js";

/** What `verify` says of a directory that no server has open. */
export async function findingsOf(disk: SimulatedDisk, dir: string): Promise<Finding[]> {
  const files: Files = disk.mount();
  const layout = new Layout(dir);
  const findings: Finding[] = [];
  try {
    const directoryId = await readMarker(files, layout);
    must(directoryId !== null, () => "the marker is gone");
    await verifyDirectory({ files, layout, directoryId, report: (finding) => void findings.push(finding), progress: () => undefined });
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error;
    findings.push({ stream: null, file: layout.marker, offset: null, problem: error.message });
  }
  return findings;
}

/** Findings as they are shown when there should be none. */
export function listed(findings: readonly Finding[]): string {
  return findings.map(({ file, offset, problem }) => `${file}${offset === null ? "" : ` at ${offset}`}: ${problem}`).join("; ");
}

/** Whose stream's directory the file is in. */
export function nameAt(names: readonly Name[], dir: string, path: string): Name | undefined {
  const layout = new Layout(dir);
  return names.find(({ name }) => layout.streamDirectory(name) === dirname(path));
}

/** After a clean end: `verify` finds nothing to say but of what was spoilt, and nothing is left that belongs to no one. */
export async function checkFiles(disk: SimulatedDisk, dir: string, names: readonly Name[]): Promise<void> {
  const layout = new Layout(dir);
  const damaged = new Set(names.filter(({ isDamaged }) => isDamaged).map(({ name }) => layout.streamDirectory(name)));
  must(damaged.size > 0 || !disk.namesIn(dir).includes("damaged"), () => "something was set aside as damaged");
  must(!disk.namesIn(dir).includes("lock"), () => "the lock is still there");
  for (const { name } of names) if (!damaged.has(layout.streamDirectory(name))) checkDropped(disk, layout.streamDirectory(name));
  const findings = (await findingsOf(disk, dir)).filter(({ file }) => !damaged.has(dirname(file)));
  must(findings.length === 0, () => `verify says: ${listed(findings)}`);
}

/** What a stream has dropped is gone from the disk, too. */
function checkDropped(disk: SimulatedDisk, directory: string): void {
  const bytes = disk.contentOf(sidecarPath(directory));
  const read = bytes === null ? null : decodeSidecar(bytes);
  if (read?.kind !== "sound" || read.sidecar.claimed) return;
  const { position } = read.sidecar.earliest;
  const left = disk.namesIn(directory).filter((file) => (segmentStartOf(file) ?? Infinity) < position);
  must(left.length === 0, () => `${directory} begins at ${position}, but has ${left.join(", ")}`);
}
