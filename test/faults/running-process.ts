import { FileStorage, type FileStorageOptions } from "../../src/storage/file/file-storage.js";
import type { Files } from "../../src/storage/file/disk/files.js";
import type { TtlMode } from "../../src/stream/rules/expiry.js";
import { Registry } from "../../src/stream/registry.js";
import { segmentRollOf, type RetentionLimits } from "../../src/stream/loaded/retention.js";
import { createLog } from "../../src/ops/log.js";
import type { ManualClock } from "../helpers/manual-clock.js";

/** Settings, with sizes small enough for everything that is rare in life to happen all the time. */
export interface ProcessSettings {
  readonly segmentBytes: number;
  readonly journalBytes: number;
  readonly journalBypassBytes: number;
  readonly tailCacheBytes: number;
  readonly maxLoadedStreams: number;
  readonly maxLoadedProducers: number;
  readonly ttlMode: TtlMode;
  readonly retention: RetentionLimits;
}

/** One life of the server, from its start to its clean end or its crash. */
export class RunningProcess {
  readonly storage: FileStorage;
  readonly registry: Registry;
  readonly clock: ManualClock;
  readonly retention: RetentionLimits;
  /** False from its crash on: nothing that it still says counts. */
  isAlive = true;
  fault: Error | null = null;
  /** Told when a stream is deleted that can't be read. */
  damagedDeleted: () => void = () => undefined;

  constructor(files: Files, settings: ProcessSettings, clock: ManualClock, trace: ((line: string) => void) | null) {
    this.clock = clock;
    this.retention = settings.retention;
    const log = createLog({ level: trace === null ? "silent" : "debug", format: "text", write: (line) => trace?.(line), clock });
    const { maxLoadedStreams, maxLoadedProducers, ttlMode, retention, segmentBytes, ...rest } = settings;
    // Small enough for indexes to have files of their own: in two of three sizes always, in one now and then.
    const maxInlineIndexBytes = segmentBytes === 1000 ? 32 : 4;
    this.storage = new ObservedStorage(() => this.damagedDeleted(), { dir: "/data", fsync: true, ...segmentRollOf(retention, segmentBytes), maxInlineIndexBytes, ...rest, clock, log, files, onFault: (error) => (this.fault = error) });
    this.registry = new Registry({ storage: this.storage, clock, log, ttlMode, retention, maxLoadedStreams, maxLoadedProducers });
  }
}

class ObservedStorage extends FileStorage {
  readonly #damagedDeleted: () => void;

  constructor(damagedDeleted: () => void, options: FileStorageOptions) {
    super(options);
    this.#damagedDeleted = damagedDeleted;
  }

  override deleteDamaged(name: string): ReturnType<FileStorage["deleteDamaged"]> {
    this.#damagedDeleted();
    return super.deleteDamaged(name);
  }
}
