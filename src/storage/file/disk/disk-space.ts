import type { Position } from "../../storage.js";
import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { Retry } from "../../../ops/retry.js";
import { isPassing, type Files, type OpenFile } from "./files.js";

/** What a watch over the disk's room needs. */
export interface RoomOptions {
  readonly files: Files;
  /** The file that is written to find out; it is there only for as long. */
  readonly probePath: string;
  readonly clock: Clock;
  readonly log: Log;
  /** There is room again. */
  readonly found: () => void;
  /** No retry helps: the disk failed. */
  readonly fault: (error: Error) => void;
}

/** A write that found no room: so many bytes at a place of a file. */
export interface Lack {
  readonly position: Position;
  readonly length: number;
}

/** How often a full disk is looked at again. */
const PROBE_MS = 1000;
/** The most that one look writes, and how much of it at a time. */
const MAX_PROBE_BYTES = 16 * 1024 * 1024;
const PROBE_STEP_BYTES = 1024 * 1024;

/**
 * Knows that the disk is full: from the first write that was refused for lack of room until a file of this room's own
 * takes as many bytes at the same position, which is tried every second. A limit on the size of files is found by the
 * position, a full disk or a quota by the bytes.
 */
export class Room {
  readonly #options: RoomOptions;
  #lack: Lack | null = null;
  /** Whether room was lacked since the probe under way began. */
  #lackedMeanwhile = false;
  readonly #nextLook: Retry;
  #probing: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: RoomOptions) {
    this.#options = options;
    this.#nextLook = new Retry(options.clock);
  }

  /** Whether a write was refused for lack of room, and none of its size would succeed since. */
  get isFull(): boolean {
    return this.#lack !== null;
  }

  /** A write found no room. The smallest of them is tried: as soon as that fits, something can be written again. */
  lacked(lack: Lack): void {
    this.#lackedMeanwhile = true;
    const isFirst = this.#lack === null;
    if (this.#lack === null || lack.length < this.#lack.length) this.#lack = lack;
    if (!isFirst) return;
    this.#options.log.error("the disk is full: appends are refused until there is room");
    this.#probeLater();
  }

  /** Looks no more; resolves when nothing is left of the last look. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#nextLook.cancel();
    await this.#probing;
  }

  #probeLater(): void {
    if (this.#stopped) return;
    this.#nextLook.after(PROBE_MS, () => (this.#probing = this.#look()));
  }

  async #look(): Promise<void> {
    const lack = this.#lack;
    this.#lackedMeanwhile = false;
    const hasRoom = lack === null || (await this.#probe(lack));
    if (!hasRoom || this.#lackedMeanwhile) return this.#probeLater();
    this.#lack = null;
    if (this.#stopped) return;
    this.#options.log.info("there is room again: appends are taken");
    this.#options.found();
  }

  async #probe(lack: Lack): Promise<boolean> {
    const { files, probePath, fault } = this.#options;
    try {
      const file = await files.open(probePath, "write");
      try {
        await fill(file, lack);
      } finally {
        await file.close();
        await files.unlink(probePath);
      }
      return true;
    } catch (error) {
      if (!isPassing(error)) fault(error instanceof Error ? error : new Error(String(error)));
      return false;
    }
  }
}

async function fill(file: OpenFile, { position, length }: Lack): Promise<void> {
  const zeros = Buffer.alloc(Math.min(length, PROBE_STEP_BYTES));
  const end = position + Math.min(length, MAX_PROBE_BYTES);
  for (let at = position; at < end; at += zeros.length) await file.write(zeros.subarray(0, Math.min(zeros.length, end - at)), at);
}
