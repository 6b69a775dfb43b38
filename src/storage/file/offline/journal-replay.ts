import { systemClock } from "../../../ops/clock.js";
import { UnreadableStreamError } from "../directory/catalog.js";
import { DirectoryError } from "../directory/lock.js";
import type { FileStream } from "../memory/file-stream.js";
import { encodeBinding } from "../journal/frame-encoder.js";
import { EngineState } from "../disk/engine-state.js";
import { readWhole } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import type { Survey, SurveyedFile } from "../survey/journal-survey.js";
import { ownSidecar, type JournaledStream } from "../survey/journaled-stream.js";
import { decodeRecords, encodeFrame, SECTOR_BYTES, type Frame, type StreamIdentity } from "../format/record.js";
import { keepStreams, NO_RECORDS, writeKept, type WantedStream } from "../journal/kept-journal.js";
import { recover } from "../recovery/recovery.js";
import { streamFiles } from "../segments/stream-files.js";
import type { RepairSteps } from "./repair-steps.js";

/** A stream whose records are not all there, or may not be. */
export interface ShortStream extends StreamIdentity {
  readonly directory: string;
  readonly reason: string;
  /** Whether nothing of it is left to apply records to. */
  readonly isLostWithAll: boolean;
}

/** What a replay decides. */
export interface Decisions {
  /** The streams that are refused from now on. */
  readonly short: readonly ShortStream[];
  /** What the journal goes on from: no batch before it is asked for again. */
  readonly lastBatch: number;
}

const CACHE_BYTES = 64 * 1024 * 1024;

/** Streams that have lost records: a gap before later ones, or a damaged record of their own. */
export function shortStreams(survey: Survey): ShortStream[] {
  const present = [...survey.streams.values()].filter(({ deleted }) => !deleted);
  // Of two with the same name the one named first is deleted, also where that record is lost.
  const holders = new Map(present.map((stream) => [stream.directory, stream]));
  return [...holders.values()]
    .filter(
      (stream) =>
        (isApplicable(stream, survey) && (stream.gap !== null || stream.suspect)) || isLostWithAll(stream, survey),
    )
    .map((stream) => shortStream(stream, survey));
}

/** Whether recovery has files to apply the stream's records to, or makes them. */
export function isApplicable(stream: JournaledStream, survey: Survey): boolean {
  const { createdHere, sidecar } = stream;
  if (isLostWithAll(stream, survey)) return false;
  if (ownSidecar(stream) !== null) return true;
  if (!createdHere || sidecar?.kind === "damaged") return false;
  // What is in the place of one that was created in the journal goes: it was deleted there, or never created.
  return sidecar === null || sidecar.sidecar.claimed || survey.streams.has(sidecar.sidecar.id);
}

/** Whether a stream's beginning is lost, and it has no files. What has its name in that case should be deleted. */
function isLostWithAll(stream: JournaledStream, { streams }: Survey): boolean {
  const { sidecar, identity, createdHere, isBeginningLost } = stream;
  if (sidecar?.kind === "damaged") return false;
  const holder = sidecar?.kind === "sound" ? sidecar.sidecar.id : identity.id;
  // The files are those of an earlier stream of the name, which go.
  if (holder !== identity.id && !createdHere && streams.get(holder)?.deleted === true) return true;
  return isBeginningLost && (ownSidecar(stream)?.claimed ?? true);
}

function shortStream(stream: JournaledStream, survey: Survey): ShortStream {
  const { identity, directory, gap, tail } = stream;
  const isLost = isLostWithAll(stream, survey);
  const reason = isLost
    ? "its creation is lost, with all that it had: it was in a damaged part of the journal, or in files that are gone"
    : `records of it from position ${gap?.tail ?? tail} on are lost, and its readers may have seen them`;
  return { ...identity, directory, reason, isLostWithAll: isLost };
}

/**
 * Applies all sound records of the journal to the streams' own files, as a start of the server does, and leaves a
 * journal that holds nothing but what could not be applied: that is kept for the next start. Streams that have lost
 * records are refused from then on.
 *
 * Until the last step the journal stays as it is: when it is damaged no server starts on it, and doing it all again
 * does the same. Returns the streams whose records are kept because their files can't take them.
 */
export async function replayJournal(
  steps: RepairSteps,
  survey: Survey,
  { short, lastBatch }: Decisions,
): Promise<FileStream[]> {
  const { files, layout, directoryId } = steps.options;
  const isWhole = survey.damages.length === 0 && survey.superseded.size === 0;
  const journal = isWhole ? survey.files : only(survey.files, ({ id }) => !survey.superseded.has(id));
  const left = await applyAll(steps, journal, { short, lastBatch });
  const next = Math.max(...survey.files.map(({ sequence }) => sequence)) + 1;
  const identity = { sequence: next, batch: lastBatch + 1, directoryId, handles: 0, fileBytes: SECTOR_BYTES };
  const empty = encodeFrame(identity, 0, NO_RECORDS);
  await replaceFile(files, layout.journalFile(next), empty);
  await files.syncDirectory(layout.journal);
  const isKept = survey.damages.length > 0 || short.length > 0;
  const leftIds = new Set(left.map(({ id }) => id));
  for (const file of journal) {
    if ((await keepLeft(steps, survey, file, leftIds)) === file.path) continue;
    if (isKept) {
      await steps.quarantine.move(file.path);
    } else {
      await files.unlink(file.path);
      // One that is gone while an older one is there leaves a gap.
      await files.syncDirectory(layout.journal);
    }
  }
  return left;
}

/** Keeps what a file has of these streams; returns where, `null` when it has nothing of them. */
async function keepLeft(
  { options: { files, layout }, quarantine }: RepairSteps,
  survey: Survey,
  { path, sequence, frames, bindings }: SurveyedFile,
  ids: ReadonlySet<string>,
): Promise<string | null> {
  const kept =
    ids.size === 0 ? [] : keepStreams(withBindings(await frames(), bindings, survey), ({ id }) => ids.has(id));
  if (kept.length === 0) return null;
  const target = layout.keptJournalFile(sequence);
  const isWhole = survey.damages.every(({ file }) => file !== path);
  if (target === path && !isWhole) await quarantine.copy(path, (await readWhole(files, path)) ?? NO_RECORDS);
  await writeKept(files, layout, sequence, kept);
  return target;
}

/** The frames with records that say what those handles stand for of which only a damaged one said it. */
function withBindings(
  frames: readonly Frame[],
  bindings: SurveyedFile["bindings"],
  { streams }: Survey,
): readonly Frame[] {
  const bound = new Set<number>();
  return frames.map((frame) => {
    const missing: Buffer[] = [];
    for (const { handle, identity, position } of decodeRecords(frame)) {
      const known = bindings.get(handle);
      if (identity === null && !bound.has(handle) && known !== undefined)
        missing.push(encodeBinding(handle, known, Math.min(position, streams.get(known.id)?.tail ?? position)));
      bound.add(handle);
    }
    const records = Buffer.concat([...missing, frame.records]);
    return { ...frame, recordCount: frame.recordCount + missing.length, records };
  });
}

/**
 * Applies records of journal files that were set aside to these streams, by id, whose files could not take them then.
 * Those of them that have lost records are refused: nothing of what is kept is asked for again, up to batch
 * `lastBatch`.
 */
export async function applyKept(
  steps: RepairSteps,
  kept: Survey,
  ids: ReadonlySet<string>,
  lastBatch: number,
): Promise<void> {
  const short = shortStreams(kept).filter(({ id }) => ids.has(id));
  const journal = only(kept.files, ({ id }) => ids.has(id));
  await applyAll(steps, journal, { short, lastBatch });
}

/**
 * The files with only the records of these streams. Behind damage a handle may stand for one that was named in the
 * damaged part: nobody knows which.
 */
function only(files: readonly SurveyedFile[], isWanted: WantedStream): SurveyedFile[] {
  return files.map((file) => ({
    ...file,
    frames: async () => keepStreams(await file.frames(), isWanted, file.bindings),
  }));
}

/** Streams that are there, but lack records that were set aside, or may lack some that were damaged there. */
export function behindKept(kept: Survey, present: Survey): JournaledStream[] {
  const isGone = (id: string): boolean => present.streams.get(id)?.deleted === true;
  return [...kept.streams.values()].filter((stream) => {
    const lacksRecords = stream.pendingRecords > 0 || stream.gap !== null || stream.suspect;
    return !stream.deleted && !isGone(stream.identity.id) && ownSidecar(stream) !== null && lacksRecords;
  });
}

/** What may be readable later is not replaced. Throws a {@link DirectoryError} where a stream's sidecar is such. */
function assertReadable({ damage }: FileStream): void {
  if (damage instanceof UnreadableStreamError) throw new DirectoryError(damage.message);
}

/** Applies all records, and refuses those that have lost some. */
async function applyAll(
  steps: RepairSteps,
  journal: readonly SurveyedFile[],
  { short, lastBatch }: Decisions,
): Promise<FileStream[]> {
  const { files, layout, directoryId, log } = steps.options;
  const shortened = new Set(short.filter((stream) => !stream.isLostWithAll).map(({ directory }) => directory));
  const lost = new Set(short.filter((stream) => stream.isLostWithAll).map(({ directory }) => directory));
  const clock = systemClock();
  let failed: Error | null = null;
  const fault = (error: Error): void => void (failed ??= error);
  const state = new EngineState({ clock, log }, fault).on("blocked", fault);
  const own = streamFiles({ files, layout, clock, log, state }, { tailCacheBytes: CACHE_BYTES });
  const { unopened } = await recover({ ...own, directoryId, maxUnwrittenBytes: CACHE_BYTES / 2, journal, lastBatch });
  const left: FileStream[] = [];
  for (const name of unopened.names()) {
    const stream = await unopened.open(name);
    if (stream === null) continue;
    if (shortened.has(stream.directory) || lost.has(stream.directory)) assertReadable(stream);
    if (lost.has(stream.directory)) continue;
    // What is before a gap is theirs like everything else.
    if (shortened.has(stream.directory)) stream.damage = null;
    if (stream.damage === null) {
      stream.unreserve();
      await own.writer.persist(stream);
    }
    // Also where the files only now turn out not to take it.
    if (stream.damage !== null) left.push(stream);
  }
  await own.shards.sync();
  state.stop();
  await own.trash.idle();
  await own.pool.closeAll();
  if (failed !== null) throw failed;
  for (const stream of short) {
    const lostWithAll = stream.isLostWithAll ? stream : null;
    const isSource = steps.isSource(stream.id);
    await steps.quarantine.refuse(stream.directory, stream.reason, { batch: lastBatch, isSource, lostWithAll });
  }
  return left;
}
