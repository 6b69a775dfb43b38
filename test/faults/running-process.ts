import { FileStorage } from "../../src/storage/file/file-storage.js";
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
  readonly clock: ManualClock;
  readonly retention: RetentionLimits;
  /** False from its crash on: nothing that it still says counts. */
  isAlive = true;
  fault: Error | null = null;
  /** Told when a stream is deleted that can't be read. */
  damagedDeleted: () => void = () => undefined;
  readonly #open: () => Promise<{ readonly storage: FileStorage; readonly registry: Registry }>;
  #opened: { readonly storage: FileStorage; readonly registry: Registry } | null = null;

  constructor(files: Files, settings: ProcessSettings, clock: ManualClock, trace: ((line: string) => void) | null) {
    this.clock = clock;
    this.retention = settings.retention;
    const log = createLog({ level: trace === null ? "silent" : "debug", format: "text", write: (line) => trace?.(line), clock });
    const { maxLoadedStreams, maxLoadedProducers, ttlMode, retention, segmentBytes, ...rest } = settings;
    // Small enough for indexes to have files of their own: in two of three sizes always, in one now and then.
    const maxInlineIndexBytes = segmentBytes === 1000 ? 32 : 4;
    const onFault = (error: Error): void => void (this.fault = error);
    this.#open = async () => {
      const storage = await FileStorage.open({
        dir: "/data",
        fsync: true,
        ...segmentRollOf(retention, segmentBytes),
        maxInlineIndexBytes,
        ...rest,
        // In half of the settings files become longer only where checkpoints are behind.
        journalSmallBytes: rest.journalBytes > 10_000 ? rest.journalBytes / 4 : rest.journalBytes,
        clock,
        log,
        files,
        onFault,
      });
      const deleteDamaged = storage.deleteDamaged.bind(storage);
      storage.deleteDamaged = (name) => {
        this.damagedDeleted();
        return deleteDamaged(name);
      };
      return { storage, registry: new Registry({ storage, clock, log, ttlMode, retention, maxLoadedStreams, maxLoadedProducers }) };
    };
  }

  /** Opens the directory. */
  async open(): Promise<void> {
    this.#opened = await this.#open();
  }

  get storage(): FileStorage {
    return this.#parts.storage;
  }

  get registry(): Registry {
    return this.#parts.registry;
  }

  get #parts(): { readonly storage: FileStorage; readonly registry: Registry } {
    if (this.#opened === null) throw new Error("the process has not opened its directory");
    return this.#opened;
  }
}
