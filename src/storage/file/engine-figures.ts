// Gathers the figures of an engine from its parts.

import type { StorageFigures } from "../figures.js";
import type { EngineState } from "./disk/engine-state.js";
import type { Journal } from "./journal/journal.js";
import type { TailCache } from "./memory/tail-cache.js";
import type { DurableChanges } from "./writing/durable-changes.js";

/** Where the figures come from. */
export interface FigureSources {
  readonly journal: Pick<Journal, "usage" | "queuedBytes">;
  readonly cache: Pick<TailCache, "bytes" | "unwrittenBytes">;
  readonly changes: Pick<DurableChanges, "appendedBytes">;
  readonly state: Pick<EngineState, "syncs">;
  readonly tailCacheBytes: number;
}

/** The figures of one engine; it keeps those that no other part has. */
export class EngineFigures {
  readonly #sources: FigureSources;
  #trims = 0;
  #trimmedBytes = 0;
  #recoveryMs = 0;
  #recoveredRecords = 0;

  constructor(sources: FigureSources) {
    this.#sources = sources;
  }

  /** The start took `ms` milliseconds, and found `records` in the journal. */
  recovered(ms: number, records: number): void {
    this.#recoveryMs = ms;
    this.#recoveredRecords = records;
  }

  /** Retention dropped `bytes` of a stream, durably. */
  trimmed(bytes: number): void {
    this.#trims += 1;
    this.#trimmedBytes += bytes;
  }

  /** All figures as they are now. */
  take(): StorageFigures {
    const { journal, cache, changes, state, tailCacheBytes } = this.#sources;
    const { fill, sealedFiles } = journal.usage;
    return {
      appendedBytes: changes.appendedBytes,
      queuedBytes: journal.queuedBytes,
      journalFill: fill,
      sealedFiles,
      cacheBytes: cache.bytes,
      cacheLimitBytes: tailCacheBytes,
      unwrittenBytes: cache.unwrittenBytes,
      trims: this.#trims,
      trimmedBytes: this.#trimmedBytes,
      recoveryMs: this.#recoveryMs,
      recoveredRecords: this.#recoveredRecords,
      unansweredSeconds: state.syncs.unansweredSeconds,
    };
  }
}
