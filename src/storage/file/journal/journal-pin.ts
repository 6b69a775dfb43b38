import type { EngineParts } from "../disk/engine-state.js";
import { isDiskFull } from "../disk/files.js";
import { pinnedPath } from "../format/layout.js";

/** Files that are kept for a backup at most, beside those that the journal itself needs. */
const MAX_PINNED_FILES = 16;

/** Why a pin has ended before its holder gave it back. */
export type PinLoss = "journal-room" | "disk-full" | "stopping";

interface Hold {
  readonly lost: (why: PinLoss) => void;
  /** Files that the journal no longer needs, under the names at which they are kept. */
  readonly paths: string[];
}

/**
 * Keeps the journal's files for a backup: while it is taken, no file is used again or removed that the journal had then
 * or has had since. It never costs an append: where the files become too many, or the disk is full, the pin is lost.
 */
export class JournalPin {
  readonly #parts: EngineParts;
  readonly #maxFiles: number;
  #hold: Hold | null = null;
  /** What was kept goes, one file after the other. */
  #removing: Promise<void> = Promise.resolve();

  constructor(parts: EngineParts, maxFiles = MAX_PINNED_FILES) {
    this.#parts = parts;
    this.#maxFiles = maxFiles;
    parts.state.on("full", () => this.lose("disk-full"));
    parts.state.on("blocked", (trouble) => isDiskFull(trouble) && this.lose("disk-full"));
    parts.state.on("phase", () => this.lose("stopping"));
  }

  /** Whether somebody has it: files are kept, and the longer each is, the more of the journal they are. */
  get isTaken(): boolean {
    return this.#hold !== null;
  }

  /** Takes it; returns what gives it back, `null` while another has it. `lost` is called at most once. */
  take(lost: (why: PinLoss) => void): (() => void) | null {
    if (this.#hold !== null) return null;
    const hold = (this.#hold = { lost, paths: [] });
    return () => this.#end(hold);
  }

  /** Ends it, whoever has it. */
  lose(why: PinLoss): void {
    const hold = this.#hold;
    if (hold === null) return;
    this.#end(hold);
    hold.lost(why);
  }

  /** Keeps a file that the journal no longer needs; false where nobody wants it: then it may be used again. */
  async keep(path: string): Promise<boolean> {
    if (this.#hold !== null && this.#hold.paths.length >= this.#maxFiles) this.lose("journal-room");
    const hold = this.#hold;
    if (hold === null) return false;
    const kept = pinnedPath(path);
    // Out of recovery's sight, like a spare file.
    await this.#parts.files.rename(path, kept);
    hold.paths.push(kept);
    if (this.#hold !== hold) this.#remove(hold);
    return true;
  }

  /** Ends it, and resolves when nothing is left of it. */
  close(): Promise<void> {
    this.lose("stopping");
    return this.#removing;
  }

  #end(hold: Hold): void {
    if (this.#hold !== hold) return;
    this.#hold = null;
    this.#remove(hold);
  }

  #remove({ paths }: Hold): void {
    const { files, log } = this.#parts;
    for (const path of paths.splice(0)) {
      this.#removing = this.#removing
        .then(() => files.unlink(path))
        // The next start removes it.
        .catch((error: unknown) => log.warn("a journal file could not be removed yet", { path, fault: String(error) }));
    }
  }
}
