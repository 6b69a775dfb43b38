import { join } from "node:path";
import type { Retry } from "../../../ops/retry.js";
import type { EngineParts } from "./engine-state.js";
import { isPassing, removeFile, type OpenFile } from "./files.js";

/** A write that found no room: so many bytes at an offset of a file. */
export interface Lack {
  readonly offset: number;
  readonly length: number;
}

/** How often a full disk is looked at again. */
const PROBE_MS = 1000;
/** The most that one look writes, and how much of it at a time. */
const MAX_PROBE_BYTES = 16 * 1024 * 1024;
const PROBE_STEP_BYTES = 1024 * 1024;

/**
 * Knows that the disk is full: from the first write that was refused for lack of room until a file of its own takes as
 * many bytes at the same offset, which is tried every second and ends with the state's `space` event. A limit on the
 * size of files is found by the offset, a full disk or a quota by the bytes.
 */
export class DiskSpace {
  readonly #parts: EngineParts;
  /** The file that is written to find out, for just as long. What a killed process leaves of it goes with the trash. */
  readonly #probePath: string;
  #lack: Lack | null = null;
  /** Whether room was lacked since the probe under way began. */
  #lackedMeanwhile = false;
  readonly #nextLook: Retry;
  #probing: Promise<void> = Promise.resolve();

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#probePath = join(parts.layout.trash, "probe");
    this.#nextLook = parts.state.retry();
  }

  /** Whether a write was refused for lack of room, and none of its size would succeed since. */
  get isFull(): boolean {
    return this.#lack !== null;
  }

  /** A write found no room. The smallest of them is tried: as soon as that fits, something can be written again. */
  lacked(lack: Lack): void {
    this.#lackedMeanwhile = true;
    this.#parts.state.emit("full");
    const isFirst = this.#lack === null;
    if (this.#lack === null || lack.length < this.#lack.length) this.#lack = lack;
    if (!isFirst) return;
    this.#parts.log.error("the disk is full: appends are refused until there is room");
    this.#probeLater();
  }

  /** Resolves when nothing is left of the last look: when the engine is no longer running there are no others. */
  idle(): Promise<void> {
    return this.#probing;
  }

  #probeLater(): void {
    if (!this.#parts.state.isRunning) return;
    this.#nextLook.after(PROBE_MS, () => (this.#probing = this.#look()));
  }

  async #look(): Promise<void> {
    if (!this.#parts.state.isRunning) return;
    const lack = this.#lack;
    this.#lackedMeanwhile = false;
    const hasRoom = lack === null || (await this.#probe(lack));
    if (!hasRoom || this.#lackedMeanwhile) return this.#probeLater();
    this.#lack = null;
    if (!this.#parts.state.isRunning) return;
    this.#parts.log.info("there is room again: appends are taken");
    this.#parts.state.emit("space");
  }

  async #probe(lack: Lack): Promise<boolean> {
    const { files, state } = this.#parts;
    try {
      const file = await files.open(this.#probePath, "write");
      try {
        await fill(file, lack);
      } finally {
        await file.close();
        // One that a kill had left may go while the trash is emptied.
        await removeFile(files, this.#probePath);
      }
      return true;
    } catch (error) {
      if (!isPassing(error)) state.fail(error);
      return false;
    }
  }
}

async function fill(file: OpenFile, { offset, length }: Lack): Promise<void> {
  const zeros = Buffer.alloc(Math.min(length, PROBE_STEP_BYTES));
  const end = offset + Math.min(length, MAX_PROBE_BYTES);
  for (let at = offset; at < end; at += zeros.length)
    await file.write(zeros.subarray(0, Math.min(zeros.length, end - at)), at);
}
