import type { AppendRecord, Position, Settlement } from "../../storage.js";
import type { FileStream } from "../memory/file-stream.js";
import { RecordKind, type BypassedPayload, type RecordKindCode } from "../format/record.js";
import type { JournalFile } from "./journal-file.js";

/** One change on its way to the disk; `kind` null is a barrier: nothing to write, but its turn to settle. */
export interface JournalEntry {
  readonly kind: RecordKindCode | null;
  readonly stream: FileStream;
  readonly change: AppendRecord;
  readonly position: Position;
  readonly segmentStart: Position;
  readonly bypassed: BypassedPayload | null;
  /** The stream's generation when the entry was made: one from before a failure is void, and settles as failed. */
  readonly generation: number;
  readonly settle: ((how: Settlement) => void) | null;
  /** A change of another stream that is in the same frame: both become durable, or neither. It has no own turn. */
  readonly companion: JournalEntry | null;
}

/** Who is told what became of the entries. */
export interface JournalListener {
  /** Applies a durable entry, before its `settle` is called. */
  apply(entry: JournalEntry, batch: number): void;
  /** All entries of a batch are applied and settled. */
  batchSettled(): void;
  /** A file is full: when all it holds is in the streams' own files, `retire` it. */
  sealed(file: JournalFile): void;
}

/** These take nothing but their record, and let files go. */
const FREEING: ReadonlySet<JournalEntry["kind"]> = new Set([RecordKind.delete, RecordKind.softDelete, RecordKind.trim]);

/** Whether an entry makes room, and was decided on nothing that an append brings. */
export function makesRoom({ kind }: Pick<JournalEntry, "kind">): boolean {
  return FREEING.has(kind);
}

/** The entry as it is now that what it stood behind has failed, which it did not need. */
export function renewed(entry: JournalEntry): JournalEntry {
  return { ...entry, generation: entry.stream.generation };
}

/**
 * Gives back what entries that can't be written have reserved. Some are spared, and to be written without the others:
 * those that make room, where there is none for what came with them. Where nothing else came, they fail as well.
 */
export function giveBack(
  entries: readonly JournalEntry[],
  how: Settlement,
): { readonly failing: readonly JournalEntry[]; readonly spared: JournalEntry[] } {
  const isSpared = how === "storage-full" ? sparedAmong(entries) : () => false;
  const failing: JournalEntry[] = [];
  const sparing: JournalEntry[] = [];
  for (const entry of entries) (isSpared(entry) ? sparing : failing).push(entry);
  for (const { stream } of failing) stream.pending -= 1;
  for (const { companion } of entries) companion?.stream.unbind();
  for (const stream of new Set(entries.map((entry) => entry.stream))) stream.unreserve();
  return { failing, spared: sparing.map(renewed) };
}

function sparedAmong(entries: readonly JournalEntry[]): (entry: JournalEntry) => boolean {
  const valid = new Set(
    entries.filter(({ kind, generation, stream }) => kind !== null && generation === stream.generation),
  );
  // A stream that never was is not deleted.
  const unmade = new Set(entries.filter(({ kind }) => kind === RecordKind.create).map(({ stream }) => stream));
  if ([...valid].every(makesRoom)) return () => false;
  return (entry) => makesRoom(entry) && valid.has(entry) && !unmade.has(entry.stream);
}
