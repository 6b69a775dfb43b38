import type { Log } from "../../../ops/log.js";
import type { Published } from "./replicated-log.js";

/** No end is told while something was refused so short a time ago: what makes room bit by bit is told once. */
const QUIET_MS = 5000;

/** What a part of the log has refused for want of room. */
interface Lack {
  /** The size of the smallest: only what is as large says that there is room again. */
  bytes: number;
  lastAtMs: number;
}

/** Tells of each part of the log that takes no more messages for want of room, and of the end of that. */
export class Fullness {
  readonly #notices: Log;
  readonly #nowMs: () => number;
  readonly #lacks = new Map<string, Lack>();

  /** `notices` is the server's log; `nowMs` tells the time by a clock that never jumps. */
  constructor(notices: Log, nowMs: () => number) {
    this.#notices = notices;
    this.#nowMs = nowMs;
  }

  /** Notes how a publish of so many bytes to a part ended. */
  published(part: string, bytes: number, how: Published["kind"]): void {
    if (how === "full") this.#refused(part, bytes);
    else if (how === "stored" && this.#lacks.size > 0) this.#stored(part, bytes);
  }

  #refused(part: string, bytes: number): void {
    const lack = this.#lacks.get(part);
    if (lack === undefined)
      this.#notices.error(`${part} is full: it takes no more until streams are deleted or its limit is raised`);
    this.#lacks.set(part, { bytes: Math.min(bytes, lack?.bytes ?? Infinity), lastAtMs: this.#nowMs() });
  }

  #stored(part: string, bytes: number): void {
    const lack = this.#lacks.get(part);
    if (lack === undefined || bytes < lack.bytes || this.#nowMs() - lack.lastAtMs < QUIET_MS) return;
    this.#lacks.delete(part);
    this.#notices.info(`${part} has room again`);
  }
}
