/** Up to so many bytes are looked through at once: that takes about a tenth of a millisecond. */
const SMALL_SCAN_BYTES = 16 * 1024;

/**
 * Who looks through many bytes for the ends of messages does so in turns: one of all of them goes on in a turn of the
 * event loop, as bytes that are in memory already would be looked through without a pause.
 */
class ScanTurns {
  #last: Promise<void> = Promise.resolve();

  /** Waits for a turn to look through so many bytes: at most some hundred KiB. */
  async forBytes(length: number): Promise<void> {
    if (length <= SMALL_SCAN_BYTES) return;
    this.#last = this.#last.then(nextTurn);
    return this.#last;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Those of this process, as it has one event loop. */
export const SCAN_TURNS: ScanTurns = new ScanTurns();
