import { basename, dirname } from "node:path";
import { readMarker } from "../../src/storage/file/directory/marker.js";
import type { Files } from "../../src/storage/file/disk/files.js";
import { indexStartOf, keptSequenceOf, Layout, segmentPath, segmentStartOf, sidecarPath } from "../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../src/storage/file/directory/lock.js";
import { decodeSidecar, type Sidecar } from "../../src/storage/file/format/sidecar.js";
import { verifyDirectory, type Finding } from "../../src/storage/file/offline/verify.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";
import type { Ledger } from "./ledger.js";
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
    await verifyDirectory({
      files,
      layout,
      directoryId,
      assertUntouched: async () => undefined,
      report: (finding) => void findings.push(finding),
      progress: () => undefined,
    });
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

/** What `verify` says of a source whose fork could not be read when it was deleted, and of such a source's forks. */
const ORPHANED = /^it lists the fork .*, which is nowhere|^its source/;

/** After a clean end: `verify` finds nothing to say but of what was spoilt, and nothing is left that belongs to no one. */
export async function checkFiles(disk: SimulatedDisk, dir: string, { names, holders }: Ledger): Promise<void> {
  const layout = new Layout(dir);
  const damaged = new Set(names.filter(({ isDamaged }) => isDamaged).map(({ name }) => layout.streamDirectory(name)));
  must(damaged.size > 0 || !disk.namesIn(dir).includes("damaged"), () => "something was set aside as damaged");
  must(
    damaged.size > 0 || !disk.namesIn(layout.journal).some((name) => keptSequenceOf(name) !== null),
    () => "something is kept of a damaged stream",
  );
  must(!disk.namesIn(dir).some((name) => name.startsWith("lock")), () => "the lock is still there");
  // An end that takes too long leaves to the journal what the streams' own files do not have yet.
  const isCheckpointed = disk.namesIn(layout.journal).length === 1;
  for (const { name, isJustWritten } of names) {
    const directory = layout.streamDirectory(name);
    if (damaged.has(directory)) continue;
    checkDropped(disk, directory);
    if (isJustWritten && isCheckpointed) checkLength(disk, directory);
  }
  if (!holders.deletedDamaged) checkReferences(disk, layout, names);
  const unindexed = new Set(names.filter(({ hasLostIndex }) => hasLostIndex).map(({ name }) => layout.streamDirectory(name)));
  const isKnown = (file: string): boolean => damaged.has(dirname(file)) || (file.endsWith(".idx") && unindexed.has(dirname(file)));
  // What the journal keeps of a damaged stream need not follow on what is left of it.
  const isKept = (stream: string | null, file: string): boolean =>
    stream !== null && damaged.has(layout.streamDirectory(stream)) && keptSequenceOf(basename(file)) !== null;
  const findings = (await findingsOf(disk, dir)).filter(
    ({ stream, file, problem }) => !isKnown(file) && !isKept(stream, file) && !(holders.deletedDamaged && ORPHANED.test(problem)),
  );
  must(findings.length === 0, () => `verify says: ${listed(findings)}`);
}

function sidecarIn(disk: SimulatedDisk, directory: string): Sidecar | null {
  const bytes = disk.contentOf(sidecarPath(directory));
  const read = bytes === null ? null : decodeSidecar(bytes);
  return read?.kind === "sound" && !read.sidecar.claimed ? read.sidecar : null;
}

/** Forks and sources know each other, and what is there is there for somebody. */
function checkReferences(disk: SimulatedDisk, layout: Layout, names: readonly Name[]): void {
  const sidecars = names.map(({ name }) => sidecarIn(disk, layout.streamDirectory(name))).filter((sidecar) => sidecar !== null);
  const byId = new Map(sidecars.map((sidecar) => [sidecar.id, sidecar]));
  for (const { id, name, config, forks, softDeleted } of sidecars) {
    for (const fork of forks?.keys() ?? [])
      must(byId.get(fork)?.config.forkedFrom?.id === id, () => `${name} is kept for the fork ${fork}, which is gone`);
    const { forkedFrom } = config;
    const isKnown = forkedFrom === null || byId.get(forkedFrom.id)?.forks?.has(id) === true;
    must(
      isKnown || names.some(({ isDamaged }) => isDamaged),
      () => `${name} was forked from ${forkedFrom?.name} ${forkedFrom?.id}, which does not know it`,
    );
    must(!softDeleted || (forks?.size ?? 0) > 0, () => `${name} is deleted and has no forks, but is there`);
    // One that memory had no room for whenever it was looked for has shown nobody its id.
    const isThere = names.some((known) =>
      known.incarnations.some((one) => !one.dead && (one.id === id || (one.id === null && known.name === name))),
    );
    must(softDeleted || isThere, () => `${name} ${id} is on disk, but not there`);
  }
}

/** Nothing is left behind the stream's end in the segment that was written last: its file, read by itself, is the stream's. */
function checkLength(disk: SimulatedDisk, directory: string): void {
  const last = sidecarIn(disk, directory)?.segments.at(-1);
  if (last === undefined) return;
  const bytes = disk.contentOf(segmentPath(directory, last.start))?.length;
  must(
    bytes === last.length,
    () => `${segmentPath(directory, last.start)} has ${bytes} bytes, the stream ends at byte ${last.length} of it`,
  );
}

/** What a stream has dropped is gone from the disk, too. */
function checkDropped(disk: SimulatedDisk, directory: string): void {
  const position = sidecarIn(disk, directory)?.earliest.position ?? 0;
  const left = disk.namesIn(directory).filter((file) => (segmentStartOf(file) ?? indexStartOf(file) ?? Infinity) < position);
  must(left.length === 0, () => `${directory} begins at ${position}, but has ${left.join(", ")}`);
}
