import type { Position } from "../../storage.js";
import type { Sidecar } from "../format/sidecar.js";
import { SmallSet } from "./small-set.js";

/** One for all streams: most have none under way. */
const NO_WORK = Promise.resolve();

/** What of a stream is in its own files, as far as this process knows. */
export class StreamDisk {
  /** Whether the directory is there, and whether it has a sidecar. */
  hasDirectory: boolean;
  hasSidecar: boolean;
  /** Whether the entry of its directory is known to be permanent. */
  hasEntry = false;
  /** Whether the directory says that the stream is damaged; its own sidecar, if it had one, is beside that. */
  hasNotice = false;
  /** A process that ended may have replaced its sidecar without the directory's sync. */
  hasUnsyncedSidecar = false;
  /** Records of it are still being read: how long its segments should be is not known yet. */
  recovering = false;
  /** The batch that the sidecar holds. */
  persistedBatch: number;
  /** Segments written to since their last sync, by start. */
  readonly unsynced = new SmallSet();
  /** Bytes written to them since. */
  unsyncedBytes = 0;
  /** Segments whose entry in the directory is permanent, by start. */
  readonly entered: SmallSet;
  /** Segments whose file was found to have the length it should, by start. */
  readonly fitted = new SmallSet();
  /**
   * Resolves once what had the name before is out of the directory, which is not this stream's until then, nor where it
   * rejects; `null` where nothing has to go, or it has gone.
   */
  vacancy: Promise<void> | null = null;
  /** The last of the file operations, which run one by one. */
  work: Promise<void> = NO_WORK;

  /** `sidecar` is what the disk says of the stream; `null` for a new one. */
  constructor(sidecar: Sidecar | null) {
    this.hasDirectory = sidecar !== null;
    this.hasSidecar = sidecar !== null;
    this.persistedBatch = sidecar?.batch ?? 0;
    this.entered = new SmallSet((sidecar?.segments ?? []).map(({ start }) => start));
  }

  /** Forgets the segment at `start`, whose file is gone. */
  forget(start: Position): void {
    for (const starts of [this.unsynced, this.entered, this.fitted]) starts.delete(start);
  }
}
