import type { AppendRecord, Position, Settlement } from "../../storage.js";
import type { FileStream } from "../memory/file-stream.js";
import type { BypassedPayload, RecordKindCode } from "../format/record.js";

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
