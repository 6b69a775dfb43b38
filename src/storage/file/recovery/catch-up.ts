import type { Clock } from "../../../ops/clock.js";
import { Retry } from "../../../ops/retry.js";
import { DamagedStreamError, StorageBusyError } from "../../storage.js";

/** What is needed to catch up. */
export interface CatchUpOptions {
  /** Opens a stream that waits, and brings it into memory. */
  readonly open: (name: string) => Promise<unknown>;
  /** A stream can't be opened now, because of `trouble`: no checkpoint comes before it can. */
  readonly failed: (trouble: Error) => void;
  readonly clock: Clock;
  readonly fault: (error: Error) => void;
}

/** Streams opened at the same time. */
const CONCURRENCY = 8;
/** Streams that each of them opens in one turn: those that need nothing from the disk must not keep requests waiting. */
const BURST = 4;
/** How soon it is tried again after too many files were open, or the disk was full. */
const RETRY_MS = 100;

/** Opens, behind the start, all streams that the journal goes on with: then the journal can be checkpointed. */
export class CatchUp {
  readonly #options: CatchUpOptions;
  #ending = false;
  #stopped = false;
  readonly #retry: Retry;

  constructor(options: CatchUpOptions) {
    this.#options = options;
    this.#retry = new Retry(options.clock);
  }

  /** Opens the streams of these names; false where some are left to the next start. Never rejects: what fails is a fault. */
  async run(names: Iterator<string>): Promise<boolean> {
    const rest = { [Symbol.iterator]: () => names };
    const worker = async (): Promise<void> => {
      let opened = 0;
      for (const name of rest) {
        await this.#open(name);
        if (this.#stopped) return;
        if ((opened += 1) % BURST === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return !this.#stopped;
  }

  /** Tries what is left once. */
  end(): void {
    this.#ending = true;
    this.#retry.now();
  }

  /** Begins nothing new. */
  stop(): void {
    this.#stopped = true;
    this.end();
  }

  async #open(name: string): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#options.open(name);
        return;
      } catch (error) {
        // Whoever asks for the stream is told of that.
        if (error instanceof DamagedStreamError) return;
        if (error instanceof StorageBusyError) await this.#isBusy(error);
        else this.#fail(error);
      }
    }
  }

  #fail(error: unknown): void {
    this.#stopped = true;
    this.#options.fault(error instanceof Error ? error : new Error(String(error)));
  }

  /** Waits for the next try, if there is to be one. */
  async #isBusy(error: StorageBusyError): Promise<void> {
    this.#options.failed(error.cause instanceof Error ? error.cause : error);
    if (this.#ending) this.#stopped = true;
    else await this.#retry.wait(RETRY_MS);
  }
}
