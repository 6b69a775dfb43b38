import { DamagedStreamError } from "./storage.js";
import type { Log } from "../ops/log.js";

/** What was found last of a file, or of a message, is remembered of so many. */
const MAX_REMEMBERED = 1000;

/** What was found of damaged streams: each is logged once, and not with every request. */
export class DamageFindings {
  readonly #log: Pick<Log, "error">;
  /** By stream and file, the last finding; the oldest first. */
  readonly #told = new Map<string, DamagedStreamError>();

  constructor(log: Pick<Log, "error">) {
    this.#log = log;
  }

  /**
   * Logs `error` if it is a finding about a stream, unless it is that file's last one, or `isEcho` of one that was told
   * before; returns it, to be thrown.
   */
  told(
    error: unknown,
    isEcho: (error: DamagedStreamError, before: DamagedStreamError) => boolean = () => false,
  ): unknown {
    if (!(error instanceof DamagedStreamError)) return error;
    const { stream, file, offset, problem, message } = error;
    const key = `${stream}\0${file}`;
    if (this.#told.get(key)?.message === message) return error;
    const isKnown = [...this.#told.values()].some((before) => before.stream === stream && isEcho(error, before));
    this.#told.delete(key);
    const [oldest] = this.#told.keys();
    if (this.#told.size >= MAX_REMEMBERED && oldest !== undefined) this.#told.delete(oldest);
    this.#told.set(key, error);
    if (!isKnown)
      this.#log.error("a stream is damaged", { stream, file, ...(offset === null ? {} : { offset }), problem });
    return error;
  }

  /** Streams with findings, as far as they are remembered. */
  get streamCount(): number {
    return new Set([...this.#told.values()].map(({ stream }) => stream)).size;
  }

  /** Forgets what was found of a stream: it is deleted, or sound again. */
  forget(name: string): void {
    for (const [key, { stream }] of this.#told) if (stream === name) this.#told.delete(key);
  }
}
