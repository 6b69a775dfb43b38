/** What a backup has done so far. Sizes in bytes. */
export class Tally {
  /** Streams looked at. */
  streams = 0;
  /** Those of which something was copied or linked. */
  changedStreams = 0;
  /** Streams that left the backup. */
  removedStreams = 0;
  /** Of streams, as all but the last of these. */
  copiedBytes = 0;
  linkedBytes = 0;
  /** Of files that were there already. */
  keptBytes = 0;

  /** Of the journal, which is copied anew each time. */
  journalBytes = 0;

  /** All that the backup has of streams, in bytes. */
  get bytes(): number {
    return this.copiedBytes + this.linkedBytes + this.keptBytes;
  }
}

/** Something in the directory that is not as it should be. */
export interface Trouble {
  /** `null` where it is not known. */
  readonly stream: string | null;
  readonly file: string;
  readonly problem: string;
}
