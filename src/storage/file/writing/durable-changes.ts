import type { StreamObserver } from "../../storage.js";
import type { FileStream } from "../memory/file-stream.js";
import type { Flusher } from "../segments/flusher.js";
import type { JournalEntry } from "../journal/journal-entry.js";
import { RecordKind } from "../format/record.js";
import type { References } from "./fork-ties.js";
import type { StreamLoader } from "../segments/stream-loader.js";
import type { TailCache } from "../memory/tail-cache.js";
import type { Trash } from "../segments/trash.js";

/** What changes are applied to. */
export interface DurableChangesOptions {
  readonly loader: Pick<StreamLoader, "leave">;
  readonly cache: TailCache;
  readonly flusher: Flusher;
  readonly references: References;
  readonly trash: Pick<Trash, "take">;
}

/** Brings what has become durable into the state that readers see, and tells those who watch. */
export class DurableChanges {
  readonly #options: DurableChangesOptions;
  readonly #observersToSettle = new Set<StreamObserver>();

  constructor(options: DurableChangesOptions) {
    this.#options = options;
  }

  /** A change, and the one of another stream that came with it, is durable as part of `batch`. */
  apply(entry: JournalEntry, batch: number): void {
    // A source that its last fork lets go of leaves memory, unless it has something that its files do not have yet.
    if (entry.companion !== null) this.apply(entry.companion, batch);
    this.#applyOne(entry.stream, entry, batch);
  }

  /** All changes of a batch have been applied. */
  batchSettled(): void {
    if (this.#observersToSettle.size === 0) return;
    for (const observer of this.#observersToSettle) observer.settled();
    this.#observersToSettle.clear();
  }

  #applyOne(stream: FileStream, entry: JournalEntry, batch: number): void {
    const { references, flusher } = this.#options;
    switch (entry.kind) {
      case RecordKind.touch:
        return stream.touch(entry.change.atMs, batch);
      case RecordKind.delete:
        return this.#delete(stream);
      case RecordKind.link:
        return stream.link(entry.change.payload.toString(), entry.position, batch);
      case RecordKind.unlink:
        stream.unlink(entry.change.payload.toString(), batch);
        return references.collect(stream);
      case RecordKind.softDelete:
        stream.softDelete(batch);
        stream.observer?.deleted();
        return references.collect(stream);
      case RecordKind.trim:
        stream.trim({ position: entry.position, segmentStart: entry.segmentStart }, batch);
        return flusher.trim(stream);
      case RecordKind.create:
        stream.created = true;
        return this.#append(stream, entry, batch);
      case RecordKind.append:
        return this.#append(stream, entry, batch);
    }
  }

  #append(stream: FileStream, entry: JournalEntry, batch: number): void {
    const { cache, flusher } = this.#options;
    const { change, position, segmentStart, bypassed } = entry;
    const { length } = change.payload;
    stream.advance(change, length, segmentStart, batch);
    if (length > 0 && stream.damage === null) {
      if (bypassed === null) cache.append(stream, segmentStart, position, change.payload);
      else cache.appendWritten(stream, segmentStart, position, change.payload, bypassed.crc);
      flusher.add(stream);
    }
    const { observer } = stream;
    if (observer === null) return;
    observer.advanced(position, position + length, stream.state.closed);
    this.#observersToSettle.add(observer);
  }

  #delete(stream: FileStream): void {
    const { loader, flusher, references, trash } = this.#options;
    stream.deleted = true;
    trash.take(stream);
    references.drop(stream);
    loader.leave(stream);
    flusher.drop(stream);
    stream.observer?.deleted();
  }
}
