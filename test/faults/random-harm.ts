import { readJournalFile } from "../../src/storage/file/journal/journal-reader.js";
import { journalSequenceOf, Layout, sidecarPath } from "../../src/storage/file/format/layout.js";
import { decodeRecords, FRAME_HEADER_BYTES, SECTOR_BYTES, type Frame } from "../../src/storage/file/format/record.js";
import { decodeSidecar } from "../../src/storage/file/format/sidecar.js";
import type { Random } from "../helpers/random.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";
import { DIR } from "./damaged-world.js";

/** What happened to a directory that nobody had open. */
export interface Harm {
  readonly what: string;
  /** Ids of the streams that it can have changed anything for; `null` where nobody can tell. */
  readonly concerns: ReadonlySet<string> | null;
  /** Whether what it took may look as if it had never been: docs/durability.md says where. */
  readonly mayGoUnnoticed: boolean;
  /** The stream's directory, `null` where it was the journal. */
  readonly directory: string | null;
}

interface PlacedFrame {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly frame: Frame;
  /** Ids of the streams that need it: their sidecars do not hold it yet; `null` where an earlier harm hides whose records it has. */
  readonly needed: ReadonlySet<string> | null;
  readonly isLast: boolean;
}

const layout = new Layout(DIR);

/**
 * Does something to one file, of the journal or of a stream; of none in the directory `spared`: of a stream without its
 * sidecar nobody can tell whether its segments are what they were.
 */
export function doHarm(disk: SimulatedDisk, random: Random, spared: string | null): Harm {
  const frames = placedFrames(disk);
  const files = streamFiles(disk).filter((path) => spared === null || !path.startsWith(`${spared}/`));
  const harm = random.weighted<() => Harm | null>([
    [8, () => flipInFrame(disk, random, frames)],
    [4, () => spoilJournal(disk, random, frames)],
    [2, () => cutJournal(disk, random, frames)],
    [1, () => removeJournal(disk, random, frames)],
    [6, () => harmStream(disk, random, files)],
    [
      2,
      () =>
        harmStream(
          disk,
          random,
          files.filter((path) => path.endsWith(".idx")),
        ),
    ],
  ])();
  disk.settle();
  return harm ?? { what: "nothing", concerns: new Set(), mayGoUnnoticed: false, directory: null };
}

function flipInFrame(disk: SimulatedDisk, random: Random, frames: readonly PlacedFrame[]): Harm | null {
  if (frames.length === 0) return null;
  const { path, from, to, needed, isLast } = random.pick(frames);
  const bit = random.integer(from * 8, to * 8 - 1);
  disk.flipBit(path, bit);
  return {
    what: `bit ${bit % 8} of byte ${Math.floor(bit / 8)} of ${path} turned around`,
    concerns: needed,
    mayGoUnnoticed: isLast && frames.length > 1,
    directory: null,
  };
}

/** Overwrites bytes among the frames: zeros, noise, or what another place has. */
function spoilJournal(disk: SimulatedDisk, random: Random, frames: readonly PlacedFrame[]): Harm | null {
  if (frames.length === 0) return null;
  const { path } = random.pick(frames);
  const content = disk.contentOf(path) ?? Buffer.alloc(0);
  const ends = frames.filter((frame) => frame.path === path);
  const end = ends.at(-1)?.to ?? 0;
  const isSectors = random.chance(0.5);
  const length = isSectors ? 512 * random.integer(1, 3) : random.integer(2, 700);
  const at = isSectors ? 512 * random.integer(0, Math.floor(end / 512)) : random.integer(0, end - 1);
  const last = Math.min(at + length, content.length);
  const bytes = random.chance(0.5) ? Buffer.alloc(last - at) : Buffer.from(Array.from({ length: last - at }, () => random.integer(0, 255)));
  disk.fileAt(path).write(bytes, at, disk.nextStamp());
  const isLast = ends.some((frame) => frame.isLast && frame.to > at && frame.from < last);
  return {
    what: `bytes ${at} to ${last} of ${path} overwritten`,
    concerns: null,
    mayGoUnnoticed: isLast && !isFirstOfAll(frames, ends, at),
    directory: null,
  };
}

/**
 * Whether the only sound frame there was is hit: without any the loss is noticed. Where an earlier harm hit one before
 * it, that may still be recognised, and be the last one by all that is left.
 */
function isFirstOfAll(frames: readonly PlacedFrame[], ends: readonly PlacedFrame[], at: number): boolean {
  return frames.length === ends.length && frames[0]?.from === 0 && at < frames[0].to;
}

function cutJournal(disk: SimulatedDisk, random: Random, frames: readonly PlacedFrame[]): Harm | null {
  const newest = frames.at(-1);
  if (newest === undefined) return null;
  const own = frames.filter(({ path }) => path === newest.path);
  const content = disk.contentOf(newest.path) ?? Buffer.alloc(0);
  const length = random.pick([random.integer(0, content.length - 1), random.integer(0, newest.to), random.pick(own).from]);
  disk.fileAt(newest.path).truncate(length, disk.nextStamp());
  // Without a frame it is like one that was made ready and never used.
  const isUnused = length < (own[0]?.to ?? 0) && own.length < frames.length;
  // One that a repair or an earlier start left may be no longer than its frame.
  const isSilent = own.every(({ frame }) => frame.fileBytes <= length);
  const mayGoUnnoticed = isUnused || isSilent || hidesGap(own, length);
  return { what: `${newest.path} cut off at ${length}`, concerns: null, mayGoUnnoticed, directory: null };
}

/** Whether all frames behind a gap that an earlier harm left go, so that what is left looks as if nothing had ever been there. */
function hidesGap(own: readonly PlacedFrame[], length: number): boolean {
  return own.some(({ from, to }, index) => {
    const end = own[index - 1]?.frame.nextOffset ?? 0;
    return from > end && to > length && length - end >= SECTOR_BYTES;
  });
}

function removeJournal(disk: SimulatedDisk, random: Random, frames: readonly PlacedFrame[]): Harm | null {
  const paths = [...new Set(frames.map(({ path }) => path))];
  if (paths.length < 2) return null;
  const path = random.pick(paths);
  disk.change([disk.entryOf(path, null)]);
  return { what: `${path} removed`, concerns: null, mayGoUnnoticed: path === paths.at(-1) || path === paths[0], directory: null };
}

function harmStream(disk: SimulatedDisk, random: Random, files: readonly string[]): Harm | null {
  if (files.length === 0) return null;
  const path = random.pick(files);
  const directory = path.slice(0, path.lastIndexOf("/"));
  const content = disk.contentOf(path) ?? Buffer.alloc(0);
  const id = idIn(disk, directory);
  const concerns = new Set(id === null ? [] : [id]);
  const how = random.pick(["bit", "bytes", "cut", "remove"] as const);
  if (how === "remove") disk.change([disk.entryOf(path, null)]);
  else if (content.length === 0) return null;
  else if (how === "bit") disk.flipBit(path, random.integer(0, content.length * 8 - 1));
  else if (how === "cut") disk.fileAt(path).truncate(random.integer(0, content.length - 1), disk.nextStamp());
  else disk.fileAt(path).write(Buffer.alloc(random.integer(1, content.length), random.integer(0, 255)), 0, disk.nextStamp());
  const isGone = how === "remove" && disk.namesIn(directory).length === 0;
  // A directory without any file is a stream that was never there.
  return { what: `${path}: ${how}`, concerns, mayGoUnnoticed: isGone, directory };
}

function idIn(disk: SimulatedDisk, directory: string): string | null {
  const bytes = disk.contentOf(sidecarPath(directory));
  const read = bytes === null ? null : decodeSidecar(bytes);
  return read?.kind === "sound" ? read.sidecar.id : null;
}

function streamFiles(disk: SimulatedDisk): string[] {
  const directories = disk
    .namesIn(layout.streams)
    .flatMap((shard) => disk.namesIn(`${layout.streams}/${shard}`).map((name) => `${layout.streams}/${shard}/${name}`));
  return directories.flatMap((directory) => disk.namesIn(directory).map((name) => `${directory}/${name}`));
}

/** Where the journal's frames are, as far as it is sound. */
function placedFrames(disk: SimulatedDisk): PlacedFrame[] {
  const directoryId = Buffer.from(/[0-9a-f]{16}/.exec(disk.contentOf(layout.marker)?.toString() ?? "")?.[0] ?? "", "hex");
  const placed: PlacedFrame[] = [];
  for (const sequence of disk
    .namesIn(layout.journal)
    .map(journalSequenceOf)
    .filter((known) => known !== null)) {
    const path = layout.journalFile(sequence);
    const owners = new Map<number, { readonly id: string; readonly batch: number }>();
    for (const frame of readJournalFile(disk.contentOf(path) ?? Buffer.alloc(0), { sequence, directoryId, lastBatch: null }).frames) {
      const needed = new Set<string>();
      let isKnown = true;
      for (const { handle, identity } of decodeRecords(frame)) {
        if (identity !== null)
          owners.set(handle, { id: identity.id, batch: batchOf(disk, identity.id, layout.streamDirectory(identity.name)) });
        const owner = owners.get(handle);
        // An earlier harm hides who that is.
        if (owner === undefined) isKnown = false;
        else if (frame.batch > owner.batch) needed.add(owner.id);
      }
      const to = frame.offset + FRAME_HEADER_BYTES + frame.records.length;
      placed.push({ path, from: frame.offset, to, frame, needed: isKnown ? needed : null, isLast: false });
    }
  }
  return placed.map((frame, index) => ({ ...frame, isLast: index === placed.length - 1 }));
}

function batchOf(disk: SimulatedDisk, id: string, directory: string): number {
  const bytes = disk.contentOf(sidecarPath(directory));
  const read = bytes === null ? null : decodeSidecar(bytes);
  return read?.kind === "sound" && read.sidecar.id === id ? read.sidecar.batch : 0;
}
