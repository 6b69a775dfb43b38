import { systemClock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { Damaged } from "./damaged.js";
import type { FileStream } from "./file-stream.js";
import { poolThreads, readWhole, replaceFile, type Files } from "./files.js";
import { ownSidecar, type JournaledStream, type Survey, type SurveyedFile } from "./journal-survey.js";
import type { Layout } from "./layout.js";
import { encodeFrame, keepRecords, type Frame } from "./record.js";
import { keepStreams, NO_RECORDS, writeKept } from "./kept-journal.js";
import { recover } from "./recovery.js";
import { SegmentPool } from "./segment-pool.js";
import { SegmentWriter } from "./segment-writer.js";
import { TailCache } from "./tail-cache.js";
import { Trash } from "./trash.js";

/** What a settlement works with. */
export interface SettlementOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  readonly damaged: Damaged;
  readonly log: Log;
}

/** A stream whose records are not all there. */
export interface ShortStream {
  readonly id: string;
  readonly name: string;
  readonly directory: string;
  readonly reason: string;
}

const CACHE_BYTES = 64 * 1024 * 1024;

/** Streams that have lost records: a gap before later ones, a damaged record of their own, or a deletion before a later creation. */
export function shortStreams({ streams }: Survey): ShortStream[] {
  const present = [...streams.values()].filter(({ deleted }) => !deleted);
  const claims = new Map<string, number>();
  for (const { directory } of present) claims.set(directory, (claims.get(directory) ?? 0) + 1);
  return present.filter((stream) => isApplicable(stream) && (stream.gap !== null || stream.suspect || claims.get(stream.directory) !== 1)).map(shortStream);
}

/** Whether recovery has files to apply the stream's records to, or makes them. */
export function isApplicable(stream: JournaledStream): boolean {
  const { createdHere, sidecar } = stream;
  return ownSidecar(stream) !== null || (createdHere && sidecar === null);
}

function shortStream({ identity, directory, gap, tail }: JournaledStream): ShortStream {
  const reason = `records of it from position ${gap?.tail ?? tail} on are lost, and its readers may have seen them`;
  return { id: identity.id, name: identity.name, directory, reason };
}

/**
 * Applies all sound records of the journal to the streams' own files, as a start of the server does, and leaves a journal
 * that holds nothing but what could not be applied: that is kept for the next start. Streams that have lost records are
 * refused from then on.
 *
 * Until the last step the journal stays as it is: when it is damaged no server starts on it, and doing it all again does
 * the same. Returns the streams whose records are kept because their files can't take them.
 */
export async function settleJournal(options: SettlementOptions, survey: Survey): Promise<FileStream[]> {
  const { files, layout, damaged } = options;
  const short = shortStreams(survey);
  const journal = survey.damages.length === 0 ? survey.files : survey.files.map((file) => ({ ...file, frames: () => knownFrames(file) }));
  const left = await applyAll(options, journal, new Set(short.map(({ directory }) => directory)));
  for (const { directory, reason } of short) await damaged.refuse(directory, reason);
  const next = Math.max(...survey.files.map(({ sequence }) => sequence)) + 1;
  await replaceFile(files, layout.journalFile(next), encodeFrame({ sequence: next, batch: survey.lastBatch + 1, directoryId: options.directoryId }, 0, NO_RECORDS));
  await files.syncDirectory(layout.journal);
  const isKept = survey.damages.length > 0 || short.length > 0;
  const leftIds = new Set(left.map(({ id }) => id));
  for (const file of journal) {
    const isWhole = survey.damages.every((damage) => damage.file !== file.path);
    if ((await keepLeft(options, file, leftIds, isWhole)) === file.path) continue;
    if (isKept) await damaged.move(file.path);
    else await files.unlink(file.path);
  }
  await files.syncDirectory(layout.journal);
  return left;
}

/** Keeps what a file has of these streams; returns where, `null` when it has nothing of them. */
async function keepLeft({ files, layout, damaged }: SettlementOptions, { path, sequence, frames }: SurveyedFile, ids: ReadonlySet<string>, isWhole: boolean): Promise<string | null> {
  const kept = ids.size === 0 ? [] : keepStreams(await frames(), ({ id }) => ids.has(id));
  if (kept.length === 0) return null;
  const target = layout.keptJournalFile(sequence);
  if (target === path && !isWhole) await damaged.copy(path, (await readWhole(files, path)) ?? NO_RECORDS);
  await writeKept({ files, layout, sequence }, kept);
  return target;
}

/**
 * Applies records of journal files that were set aside to these streams, by id, whose files could not take them then.
 * Those of them that have lost records are refused.
 */
export async function applyKept(options: SettlementOptions, kept: Survey, ids: ReadonlySet<string>): Promise<void> {
  const short = shortStreams(kept).filter(({ id }) => ids.has(id));
  const journal = kept.files.map((file) => ({ ...file, frames: () => knownFrames(file, ids) }));
  await applyAll(options, journal, new Set(short.map(({ directory }) => directory)));
  for (const { directory, reason } of short) await options.damaged.refuse(directory, reason);
}

/** Streams that are there, and whose files lack records that were set aside. */
export function behindKept(kept: Survey, present: Survey): JournaledStream[] {
  const isGone = (id: string): boolean => present.streams.get(id)?.deleted === true;
  return [...kept.streams.values()].filter((stream) => {
    const lacksRecords = stream.pendingRecords > 0 || stream.gap !== null;
    return !stream.deleted && !isGone(stream.identity.id) && ownSidecar(stream) !== null && lacksRecords;
  });
}

async function applyAll({ files, layout, directoryId, log }: SettlementOptions, journal: readonly SurveyedFile[], short: ReadonlySet<string>): Promise<FileStream[]> {
  const pool = new SegmentPool(files);
  const cache = new TailCache(CACHE_BYTES);
  const writer = new SegmentWriter({ files, layout, pool, cache, threads: poolThreads(), damaged: (stream, damage) => void (stream.damage = damage) });
  let failed: Error | null = null;
  const fault = (error: Error): void => void (failed ??= error);
  const trash = new Trash({ files, layout, pool, clock: systemClock(), log, failed: fault, fault, noteShard: (directory) => writer.noteShard(directory) });
  const { backlog } = await recover({ files, layout, directoryId, writer, cache, trash, maxUnwrittenBytes: CACHE_BYTES / 2, journal });
  const left: FileStream[] = [];
  for (const name of backlog.names()) {
    const stream = await backlog.open(name);
    if (stream === null) continue;
    // What is before a gap is theirs like everything else.
    if (short.has(stream.directory)) stream.damage = null;
    if (stream.damage === null) await settle(writer, stream);
    // Also where the files only now turn out not to take it.
    if (stream.damage !== null) left.push(stream);
  }
  await writer.syncShards();
  await trash.stop();
  await pool.closeAll();
  if (failed !== null) throw failed;
  return left;
}

async function settle(writer: SegmentWriter, stream: FileStream): Promise<void> {
  stream.unreserve();
  await writer.persist(stream);
}

/** Behind damage a handle may stand for a stream that was named in the damaged part: nobody knows which. `ids` are all that count. */
async function knownFrames(file: SurveyedFile, ids: ReadonlySet<string> | null = null): Promise<readonly Frame[]> {
  const known = new Set<number>();
  return (await file.frames()).map((frame) =>
    keepRecords(frame, ({ handle, identity }) => {
      if (identity !== null && (ids?.has(identity.id) ?? true)) known.add(handle);
      return known.has(handle);
    }),
  );
}
