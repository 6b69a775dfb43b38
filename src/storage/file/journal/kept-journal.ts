import type { FileStream } from "../memory/file-stream.js";
import { readWhole, removeFile, type Files } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import type { DataDirectory } from "../directory/directory.js";
import { readJournalFile } from "./journal-reader.js";
import type { Layout } from "../format/layout.js";
import {
  decodeFrame,
  decodeHeads,
  encodeFrame,
  keepRecords,
  type Frame,
  type StreamIdentity,
} from "../format/record.js";

/** A journal file that is done, or what was kept of one. */
export interface DoneFile {
  readonly sequence: number;
  readonly path: string;
  /** Whether it is what was kept of one: then it is no file that could be used again. */
  readonly isKept?: boolean;
  readonly streams: ReadonlySet<FileStream>;
}

/** Bytes of a frame that has none. */
export const NO_RECORDS = Buffer.alloc(0);

/**
 * Keeps what the files of some streams can't take, so that the journal file that has it can be freed for all others:
 * the records of just these streams, as frames of their own. They are still the journal's: each start, and each repair,
 * brings them to the streams' files again, before what the journal has after them. So nothing may be kept of a stream
 * that is deleted, once the journal forgets its deletion: it would come back.
 */
export class KeptJournal {
  readonly #files: Files;
  readonly #layout: Layout;
  /** By sequence, the names of the streams that have records in the file. */
  readonly #names = new Map<number, ReadonlySet<string>>();

  constructor({ files, layout }: Pick<DataDirectory, "files" | "layout">) {
    this.#files = files;
    this.#layout = layout;
  }

  /**
   * Keeps what `file` has of the `harmed` streams, permanently, and nothing of the rest; of those of its streams that
   * are deleted, nothing that older files had either. Doing it again changes nothing.
   */
  async keep(file: DoneFile, harmed: readonly FileStream[]): Promise<void> {
    const gone = new Set([...file.streams].filter(({ deleted }) => deleted).map(({ name }) => name));
    for (const [sequence, names] of this.#names) {
      const rest = [...names].filter((name) => !gone.has(name));
      if (sequence < file.sequence && rest.length < names.size) await this.#narrow(sequence, new Set(rest));
    }
    const ids = new Set(harmed.map(({ id }) => id));
    if (harmed.length > 0) await this.#replace(file, new Set(harmed.map(({ name }) => name)), ({ id }) => ids.has(id));
    else if (file.isKept === true) await this.#remove(file.sequence);
  }

  #narrow(sequence: number, names: ReadonlySet<string>): Promise<void> {
    if (names.size === 0) return this.#remove(sequence);
    const kept = { sequence, path: this.#layout.keptJournalFile(sequence), isKept: true };
    return this.#replace(kept, names, ({ name }) => names.has(name));
  }

  async #replace(
    { sequence, path, isKept = false }: Omit<DoneFile, "streams">,
    names: ReadonlySet<string>,
    isWanted: WantedStream,
  ): Promise<void> {
    const bytes = (await readWhole(this.#files, path)) ?? NO_RECORDS;
    const kept = keepStreams(framesOf(path, bytes, sequence, isKept), isWanted);
    // Of a stream whose only batch failed there is nothing.
    if (kept.length === 0) return isKept ? this.#remove(sequence) : undefined;
    await writeKept(this.#files, this.#layout, sequence, kept);
    this.#names.set(sequence, names);
  }

  async #remove(sequence: number): Promise<void> {
    await removeFile(this.#files, this.#layout.keptJournalFile(sequence));
    await this.#files.syncDirectory(this.#layout.journal);
    this.#names.delete(sequence);
  }
}

/** Throws where the file is damaged by now: it stays where it is, and the next start says what is wrong. */
function framesOf(path: string, bytes: Buffer, sequence: number, isKept: boolean): readonly Frame[] {
  const first = decodeFrame(bytes, 0);
  const expected = { sequence, directoryId: first?.directoryId ?? NO_RECORDS, lastBatch: null, isKept };
  const read = first === null ? null : readJournalFile(bytes, expected);
  if (read?.damages.length === 0) return read.frames;
  throw new Error(`journal file ${path} was damaged since it was written, at byte ${read?.damages[0]?.offset ?? 0}`);
}

/** Whether something is to be kept of a stream. */
export type WantedStream = (stream: { readonly id: string; readonly name: string }) => boolean;

/**
 * The frames of one journal file with only the records of these streams, those without any left out; `bindings` say
 * what handles stand for besides.
 */
export function keepStreams(
  frames: readonly Frame[],
  isWanted: WantedStream,
  bindings: ReadonlyMap<number, StreamIdentity> = new Map(),
): readonly Frame[] {
  const wanted = new Map([...bindings].map(([handle, identity]) => [handle, isWanted(identity)]));
  const kept = frames.map((frame) =>
    keepRecords(frame, ({ handle, identity }) => {
      if (identity !== null) wanted.set(handle, isWanted(identity));
      return wanted.get(handle) === true;
    }),
  );
  return kept.filter(({ recordCount }) => recordCount > 0);
}

/** Puts frames in the place of what was kept of the journal file `sequence`, permanently. There is at least one. */
export async function writeKept(
  files: Files,
  layout: Layout,
  sequence: number,
  frames: readonly Frame[],
): Promise<void> {
  const last = frames.at(-1);
  if (last === undefined) throw new RangeError(`nothing is to be kept of journal file ${sequence}`);
  const { batch, directoryId } = last;
  const bound = new Set<number>();
  const framed = frames.map((frame) => {
    for (const { handle, identity } of decodeHeads(frame)) if (identity !== null) bound.add(handle);
    const identity = { sequence, batch: frame.batch, directoryId, handles: bound.size, fileBytes: 0 };
    return encodeFrame(identity, frame.recordCount, frame.records);
  });
  // The last frame has no record: where it is missing, so may be others.
  const end = encodeFrame({ sequence, batch, directoryId, handles: bound.size, fileBytes: 0 }, 0, NO_RECORDS);
  await replaceFile(files, layout.keptJournalFile(sequence), Buffer.concat([...framed, end]));
  await files.syncDirectory(layout.journal);
}
