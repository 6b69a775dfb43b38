import { EventEmitter } from "node:events";
import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { Retry } from "../../../ops/retry.js";
import type { Layout } from "../format/layout.js";
import type { Files } from "./files.js";
import { SyncWatch } from "./sync-watch.js";

/** The disk, the clock, the log and the state of one engine: all its parts share them. */
export interface EngineParts {
  readonly files: Files;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly log: Log;
  readonly state: EngineState;
}

interface EngineEvents {
  /** The phase has changed. */
  phase: [];
  /** A write has room again, after one found none. */
  space: [];
  /** A write found no room. */
  full: [];
  /** The journal can't be freed now, for a reason that passes: nobody need wait long for that. */
  blocked: [trouble: Error];
}

/**
 * The one state of the engine. `running`, until a clean end begins; `ending`, while what the journal holds goes to the
 * streams' own files and each retry has one more try; `stopped`, when what is left goes there at the next start.
 * `failed` from any of them: the disk did not do what it was told, and nothing is written any more.
 */
export class EngineState extends EventEmitter<EngineEvents> {
  /** How the disk answers the writes of batches. */
  readonly syncs: SyncWatch;
  readonly #parts: Pick<EngineParts, "clock" | "log">;
  readonly #onFault: (error: Error) => void;
  readonly #retries: Retry[] = [];
  #phase: "running" | "ending" | "stopped" | "failed" = "running";
  #failure: Error | null = null;

  constructor(parts: Pick<EngineParts, "clock" | "log">, onFault: (error: Error) => void) {
    super();
    this.syncs = new SyncWatch(parts);
    this.#parts = parts;
    this.#onFault = onFault;
  }

  /** Whether what fails for a reason that passes is tried until it succeeds. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  /** Whether nothing new begins: what is left is the next start's. */
  get isOver(): boolean {
    return this.#phase === "stopped" || this.#phase === "failed";
  }

  /** Why the engine has failed; `null` while it has not. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** The retry of one part. Its pending try comes at once when the phase changes. */
  retry(): Retry {
    const retry = new Retry(this.#parts.clock);
    this.#retries.push(retry);
    return retry;
  }

  /** A clean end begins. */
  end(): void {
    if (this.isRunning) this.#become("ending");
  }

  /** Nothing new begins, and nobody waits any more for what does not come at once. */
  stop(): void {
    if (!this.isOver) this.#become("stopped");
  }

  /** The disk failed, which is final: a second failure changes nothing. */
  fail(problem: unknown): void {
    if (this.#failure !== null) return;
    const failure = (this.#failure = problem instanceof Error ? problem : new Error(String(problem)));
    this.#become("failed");
    this.#parts.log.error("the disk failed: nothing is written any more", { fault: failure.message });
    this.#onFault(failure);
  }

  #become(phase: "ending" | "stopped" | "failed"): void {
    this.#phase = phase;
    this.emit("phase");
    for (const retry of this.#retries) retry.now();
  }
}
