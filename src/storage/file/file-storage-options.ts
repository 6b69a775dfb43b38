import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { StorageObserver } from "../figures.js";
import type { Files } from "./disk/files.js";
import type { StreamFilesOptions } from "./segments/stream-files.js";

/** Where the engine keeps streams, and how. Sizes in bytes. */
export interface FileStorageOptions extends StreamFilesOptions {
  readonly dir: string;
  /** Names of files that a new directory may have in it, beside what any may. */
  readonly besides?: readonly string[];
  /** Whether a change is settled only when it is on disk. */
  readonly fsync: boolean;
  /** A stream begins a new segment at about this size, or when the first byte of the last is this old. */
  readonly segmentBytes: number;
  readonly segmentAgeMs?: number;
  /** The most that a file of the journal takes, but for a record longer than a quarter of that. */
  readonly journalBytes: number;
  /** What one takes while checkpoints keep up; only tests know better than the engine. */
  readonly journalSmallBytes?: number;
  /** The memory that names of streams may take; only tests know better than the engine. */
  readonly maxNamesBytes?: number;
  /** An append of this size goes to its segment first; at most a quarter of `journalBytes` counts. */
  readonly journalBypassBytes: number;
  /** Whether the lock of a process that can't be seen from here is taken away. */
  readonly forceUnlock?: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** The disk failed: nothing is accepted any more, and the process should end for a clean recovery. */
  readonly onFault: (error: Error) => void;
  /** The file system; the real one when absent. */
  readonly files?: Files;
  readonly observer?: StorageObserver;
}
