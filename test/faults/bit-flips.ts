import { readJournalFile } from "../../src/storage/file/journal/journal-reader.js";
import { indexPath, journalSequenceOf, Layout, segmentPath, sidecarPath } from "../../src/storage/file/format/layout.js";
import { decodeRecords, RecordKind, type Frame, type StreamIdentity } from "../../src/storage/file/format/record.js";
import { decodeSidecar, type Sidecar } from "../../src/storage/file/format/sidecar.js";
import type { Random } from "../helpers/random.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";

/**
 * What a bit that is turned around must lead to. `refused`: the server does not start, and says why. `damaged`: the
 * stream's bytes are not served; `buried`: so too, if it is not gone already. `index`: its reads end anywhere. `harmless`:
 * nothing.
 */
export type FlipEffect = "refused" | "damaged" | "buried" | "index" | "harmless";

/** One bit of a file at rest. */
export interface BitFlip {
  readonly path: string;
  /** Counted from the file's start. */
  readonly bit: number;
  readonly effect: FlipEffect;
}

/** A range of a file, `to` not included. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** A payload that only its segment holds. */
interface Bypassed extends Range {
  readonly id: string;
  readonly batch: number;
  readonly segmentStart: number;
}

/** What the journal says, as far as it matters to which bits count. */
interface JournalView {
  /** Where sound frames are, by file. */
  readonly frames: ReadonlyMap<string, readonly Range[]>;
  readonly last: { readonly path: string; readonly range: Range } | null;
  readonly count: number;
  readonly deletedIds: ReadonlySet<string>;
  /** Their names: what is damaged in the place of one of these is taken for what is left of it. */
  readonly deletedNames: ReadonlySet<string>;
  readonly bypassed: readonly Bypassed[];
  /** Where streams begin from now on, by id: what is before that goes unread. */
  readonly trims: ReadonlyMap<string, number>;
}

/** Picks a bit of the directory `dir`, anywhere but in the journal's last frame: that one looks like a torn write. */
export function pickFlip(disk: SimulatedDisk, dir: string, random: Random): BitFlip | null {
  const layout = new Layout(dir);
  // Before the end of a directory's first start there is nothing to lose.
  if (disk.contentOf(layout.marker) === null) return null;
  const journal = viewJournal(disk, layout);
  const path = pickFile(disk, layout, random);
  if (journal === null || path === null) return null;
  const frames = journal.frames.get(path) ?? [];
  // Most of a journal file is zeros.
  const { from, to } = frames.length > 0 && random.chance(0.8) ? random.pick(frames) : { from: 0, to: disk.contentOf(path)?.length ?? 0 };
  const bit = random.integer(from * 8, to * 8 - 1);
  const at = Math.floor(bit / 8);
  const { last } = journal;
  // Where it is the only one there is, its loss is noticed.
  const isTornEnd = last !== null && journal.count > 1 && last.path === path && isIn(at, last.range);
  return isTornEnd ? null : { path, bit, effect: effectOf(disk, layout, journal, path, at) };
}

function effectOf(disk: SimulatedDisk, layout: Layout, journal: JournalView, path: string, at: number): FlipEffect {
  if (path === layout.marker) return "refused";
  const frames = journal.frames.get(path);
  if (frames !== undefined) return frames.some((range) => isIn(at, range)) ? "refused" : "harmless";
  const directory = path.slice(0, path.lastIndexOf("/"));
  const bytes = disk.contentOf(sidecarPath(directory));
  const read = bytes === null ? null : decodeSidecar(bytes);
  if (read?.kind !== "sound") return "harmless";
  const { sidecar } = read;
  if (isIndexed(sidecar, journal, directory, path, at)) return journal.deletedIds.has(sidecar.id) ? "buried" : "index";
  const matters = path === sidecarPath(directory) || isCovered(sidecar, journal, directory, path, at);
  if (!matters) return "harmless";
  const isLeft = sidecar.claimed && journal.deletedNames.has(sidecar.name);
  return journal.deletedIds.has(sidecar.id) || isLeft ? "buried" : "damaged";
}

/** Whether a checksum vouches for byte `at` of a segment: the sidecar's, or that of a large payload's record. */
function isCovered(sidecar: Sidecar, journal: JournalView, directory: string, path: string, at: number): boolean {
  const trimmedTo = journal.trims.get(sidecar.id) ?? 0;
  const isInSidecar =
    !sidecar.claimed &&
    sidecar.segments.some(({ start, length }) => start + length > trimmedTo && segmentPath(directory, start) === path && at < length);
  const counts = ({ id, batch, segmentStart, from }: Bypassed): boolean =>
    id === sidecar.id && batch > sidecar.batch && segmentStart + from >= trimmedTo && segmentPath(directory, segmentStart) === path;
  return isInSidecar || journal.bypassed.some((payload) => counts(payload) && isIn(at, payload));
}

/** Whether a sidecar vouches for byte `at` of an index. */
function isIndexed(sidecar: Sidecar, journal: JournalView, directory: string, path: string, at: number): boolean {
  const trimmedTo = Math.max(journal.trims.get(sidecar.id) ?? 0, sidecar.earliest.position);
  return sidecar.segments.some(
    ({ start, length, index }) =>
      start + length > trimmedTo &&
      indexPath(directory, start) === path &&
      index !== null &&
      index !== "one" &&
      index.inline === null &&
      at < index.length,
  );
}

function isIn(at: number, { from, to }: Range): boolean {
  return at >= from && at < to;
}

/** A file of any kind, each kind as likely as the others; `null` when the kind picked has none with a byte. */
function pickFile(disk: SimulatedDisk, layout: Layout, random: Random): string | null {
  const inStreams = disk
    .namesIn(layout.streams)
    .flatMap((shard) => disk.namesIn(`${layout.streams}/${shard}`).map((name) => `${layout.streams}/${shard}/${name}`));
  const streamFiles = inStreams.flatMap((directory) => disk.namesIn(directory).map((name) => `${directory}/${name}`));
  const kinds: readonly (readonly string[])[] = [
    streamFiles.filter((path) => path.endsWith(".seg")),
    streamFiles.filter((path) => path.endsWith(".seg")),
    streamFiles.filter((path) => path.endsWith(".idx")),
    streamFiles.filter((path) => !/\.(seg|idx)$/.test(path)),
    disk.namesIn(layout.journal).map((name) => `${layout.journal}/${name}`),
    [layout.marker],
  ];
  const files = random.pick(kinds).filter((path) => (disk.contentOf(path)?.length ?? 0) > 0);
  return files.length === 0 ? null : random.pick(files);
}

/** Reads the journal; `null` when it does not hang together, as before the first start's end. */
function viewJournal(disk: SimulatedDisk, layout: Layout): JournalView | null {
  const directoryId = Buffer.from(/[0-9a-f]{16}/.exec(disk.contentOf(layout.marker)?.toString() ?? "")?.[0] ?? "", "hex");
  const frames = new Map<string, Range[]>();
  const deletedIds = new Set<string>();
  const deletedNames = new Set<string>();
  const bypassed: Bypassed[] = [];
  const trims = new Map<string, number>();
  let last: JournalView["last"] = null;
  let count = 0;
  for (const sequence of disk
    .namesIn(layout.journal)
    .map(journalSequenceOf)
    .filter((known) => known !== null)) {
    const path = layout.journalFile(sequence);
    const content = readJournalFile(disk.contentOf(path) ?? Buffer.alloc(0), { sequence, directoryId, lastBatch: null });
    if (content.damages.length > 0) return null;
    frames.set(path, []);
    const identities = new Map<number, StreamIdentity>();
    for (const [range, frame] of placed(content.frames)) {
      frames.get(path)?.push(range);
      last = { path, range };
      count += 1;
      noteRecords(frame, identities, { deletedIds, deletedNames, bypassed, trims });
    }
  }
  return { frames, last, count, deletedIds, deletedNames, bypassed, trims };
}

const FRAME_HEADER_BYTES = 48;

function placed(frames: readonly Frame[]): [Range, Frame][] {
  let from = 0;
  return frames.map((frame) => {
    const range = { from, to: from + FRAME_HEADER_BYTES + frame.records.length };
    from = frame.nextOffset;
    return [range, frame];
  });
}

interface Notes {
  readonly deletedIds: Set<string>;
  readonly deletedNames: Set<string>;
  readonly bypassed: Bypassed[];
  readonly trims: Map<string, number>;
}

function noteRecords(frame: Frame, identities: Map<number, StreamIdentity>, { deletedIds, deletedNames, bypassed, trims }: Notes): void {
  for (const { kind, handle, identity, position, segmentStart, bypassed: payload } of decodeRecords(frame)) {
    if (identity !== null) identities.set(handle, identity);
    const { id, name } = identities.get(handle) ?? { id: "", name: "" };
    if (kind === RecordKind.delete) deletedIds.add(id);
    if (kind === RecordKind.delete) deletedNames.add(name);
    if (kind === RecordKind.trim) trims.set(id, position);
    if (payload !== null)
      bypassed.push({ id, batch: frame.batch, segmentStart, from: position - segmentStart, to: position - segmentStart + payload.length });
  }
}
