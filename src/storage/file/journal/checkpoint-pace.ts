/**
 * Lets the last journal file that there may be fill no faster than the checkpoint frees the oldest. Appends slow down
 * meanwhile, rather than all stop when that file is full.
 */
export class CheckpointPace {
  #done: number | null = null;
  /** How far file and checkpoint were when the file began to wait: from there both reach their ends together. */
  #from: { readonly done: number; readonly filled: number; readonly checkpoints: number } | null = null;

  /** So much of the oldest file is done, from 0 to 1; `null` while no checkpoint is under way. */
  checkpointAt(done: number | null): void {
    this.#done = done;
    if (done === null) this.reset();
  }

  /** The file being written is not the last one. */
  reset(): void {
    this.#from = null;
  }

  /**
   * Whether more may be written to the last file, of which so much is `filled`, from 0 to 1. A process that was killed
   * may leave more files than there may be: then it takes more `checkpoints` than the one under way to free the next.
   */
  allows(filled: number, checkpoints: number): boolean {
    if (this.#done === null) return true;
    this.#from ??= { done: this.#done, filled, checkpoints };
    const { done, filled: start } = this.#from;
    const share = done < 1 ? (this.#done - done) / (1 - done) : 1;
    return filled <= start + ((1 - start) * share) / this.#from.checkpoints;
  }
}
