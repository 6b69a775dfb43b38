import type { AppendRecord, Position, Settlement } from "../../storage.js";
import type { FileStream } from "../memory/file-stream.js";
import type { BypassedPayload, RecordKindCode } from "../format/record.js";
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
