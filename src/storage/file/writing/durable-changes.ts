import { EventEmitter } from "node:events";
import type { StreamEvents, StreamObserver } from "../../storage.js";
import type { FileStream } from "../memory/file-stream.js";
import type { Flusher } from "../segments/flusher.js";
import { RecordKind } from "../format/record.js";
import { applyRecord, type Consequences } from "../journal/apply-record.js";
import type { JournalEntry } from "../journal/journal-entry.js";
import type { ForkTies } from "./fork-ties.js";
import type { StreamLoader } from "../segments/stream-loader.js";
import type { StreamFiles } from "../segments/stream-files.js";

/** Who follows changes. */
export interface DurableChangesOptions extends Pick<StreamFiles, "cache" | "trash"> {
  readonly loader: Pick<StreamLoader, "leave">;
  readonly flusher: Flusher;
  readonly forkTies: ForkTies;
}

/** Brings what has become durable into the state that readers see, and tells those who watch. */
export class DurableChanges implements Consequences<FileStream, JournalEntry> {
  /** For whoever follows all streams. */
  readonly events = new EventEmitter<StreamEvents>().setMaxListeners(0);
  readonly #options: DurableChangesOptions;
  /** Payload that became durable since the start. */
  appendedBytes = 0;
  /** The last batch of which something was applied; at the start the journal's first, which holds nothing. */
  lastBatch: number;
  readonly #observersToSettle = new Set<StreamObserver>();

  constructor(options: DurableChangesOptions, firstBatch: number) {
    this.lastBatch = firstBatch;
    this.#options = options;
  }

  /** A change, and the one of another stream that came with it, is durable as part of `batch`. */
  apply(entry: JournalEntry, batch: number): void {
    this.lastBatch = batch;
    // The companion first: a source with a change that its files lack stays in memory when its last fork goes.
    if (entry.companion !== null) this.apply(entry.companion, batch);
    void applyRecord(entry.stream, entry, batch, this);
  }

  /** All changes of a batch have been applied. */
  batchSettled(): void {
    if (this.#observersToSettle.size === 0) return;
    for (const observer of this.#observersToSettle) observer.settled();
    this.#observersToSettle.clear();
  }

  created(stream: FileStream): void {
    stream.created = true;
  }

  appended(stream: FileStream, { kind, change, position, segmentStart, bypassed }: JournalEntry): void {
    const { cache, flusher } = this.#options;
    if (kind === RecordKind.create) this.events.emit("created", stream);
    else if (change.closes) this.events.emit("closed", stream);
    const { length } = change.payload;
    this.appendedBytes += length;
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

  trimmed(stream: FileStream): void {
    this.#options.flusher.trim(stream);
  }

  unlinked(stream: FileStream): void {
    this.#options.forkTies.collect(stream);
  }

  softDeleted(stream: FileStream): void {
    this.events.emit("deleted", stream.name);
    stream.observer?.deleted();
    this.#options.forkTies.collect(stream);
  }

  deleted(stream: FileStream): void {
    const { loader, flusher, forkTies, trash } = this.#options;
    // One that was kept for its forks has been told of.
    if (!stream.ties.softDeleted) this.events.emit("deleted", stream.name);
    stream.deleted = true;
    trash.take(stream);
    forkTies.drop(stream);
    loader.leave(stream);
    flusher.drop(stream);
    stream.observer?.deleted();
  }
}
