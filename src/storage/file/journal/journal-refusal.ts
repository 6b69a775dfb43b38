import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { Retry } from "../../../ops/retry.js";

/** What a journal can lack: room for a frame, room for the checkpoint that frees its files, or a file it can open. */
export type Lacked = "frame-room" | "checkpoint-room" | "file";

/** How long entries wait for a file while none can be opened. Those that come after that do not wait. */
const FILE_WAIT_MS = 2000;

/** How a journal refuses changes. */
export type JournalRejection = "storage-full" | "overloaded";

/** Knows whether the journal refuses changes, and what it lacks. */
export class JournalRefusal {
  readonly #log: Log;
  readonly #patience: Retry;
  #lacked: Lacked | null = null;
  #last: JournalRejection = "storage-full";

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#log = log;
    this.#patience = new Retry(clock);
  }

  /** Why changes are refused; `null` while they are taken. */
  get rejection(): JournalRejection | null {
    return this.#lacked === null ? null : this.#last;
  }

  /** Why changes were refused the last time that they were: so fails what was decided on those. */
  get last(): JournalRejection {
    return this.#last;
  }

  /** Changes are refused from now on. */
  begin(lacked: Lacked): void {
    if (lacked === "file" && this.#lacked !== "file")
      this.#log.error("no more files can be opened: appends are refused until they can");
    this.#lacked = lacked;
    this.#last = lacked === "file" ? "overloaded" : "storage-full";
    this.#patience.cancel();
  }

  /**
   * Entries wait for a file while none can be opened: calls `isOver` when they have waited long enough, unless changes
   * are taken again before.
   */
  waitForFile(isOver: () => void): void {
    if (!this.#patience.isPending) this.#patience.after(FILE_WAIT_MS, isOver);
  }

  /** What was lacked is there again. Changes are taken, unless something else is lacked than `found`. */
  end(found: Lacked): void {
    if (found === this.#lacked) this.endAll();
  }

  /** Something was written: nothing is lacked. */
  endAll(): void {
    if (this.#lacked === "file") this.#log.info("files can be opened again: appends are taken");
    this.#lacked = null;
    this.#patience.cancel();
  }
}
