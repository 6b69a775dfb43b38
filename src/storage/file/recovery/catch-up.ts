import type { Retry } from "../../../ops/retry.js";
import { DamagedStreamError, StorageBusyError } from "../../storage.js";
import type { EngineState } from "../disk/engine-state.js";

/** Streams opened at the same time. */
const CONCURRENCY = 8;
/** Streams that each of them opens in one turn: those that need nothing from the disk must not keep requests waiting. */
const BURST = 4;
/** How soon it is tried again after too many files were open, or the disk was full. */
const RETRY_MS = 100;

/** Opens, behind the start, all streams that the journal goes on with: then the journal can be checkpointed. */
export class CatchUp {
  readonly #state: EngineState;
  readonly #retry: Retry;
  readonly #open: (name: string) => Promise<unknown>;

  /** `open` opens a stream that waits, and brings it into memory. */
  constructor(state: EngineState, open: (name: string) => Promise<unknown>) {
    this.#state = state;
    this.#retry = state.retry();
    this.#open = open;
  }

  /** Opens the streams of these names; false where some are left to the next start. Never rejects: what fails is a fault. */
  async run(names: Iterator<string>): Promise<boolean> {
    const rest = { [Symbol.iterator]: () => names };
    const worker = async (): Promise<void> => {
      let opened = 0;
      for (const name of rest) {
        await this.#openOne(name);
        if (this.#state.isOver) return;
        if ((opened += 1) % BURST === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return !this.#state.isOver;
  }

  async #openOne(name: string): Promise<void> {
    while (!this.#state.isOver) {
      try {
        await this.#open(name);
        return;
      } catch (error) {
        // Whoever asks for the stream is told of that.
        if (error instanceof DamagedStreamError) return;
        if (error instanceof StorageBusyError) await this.#isBusy(error);
        else this.#state.fail(error);
      }
    }
  }

  /** Waits for the next try, if there is to be one. */
  async #isBusy(error: StorageBusyError): Promise<void> {
    this.#state.emit("blocked", error.cause instanceof Error ? error.cause : error);
    if (this.#state.isRunning) await this.#retry.wait(RETRY_MS);
    else this.#state.stop();
  }
}
