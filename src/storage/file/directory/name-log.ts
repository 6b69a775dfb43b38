import type { EventEmitter } from "node:events";
import type { Log } from "../../../ops/log.js";
import { nextTurn } from "../../../ops/turns.js";
import type { StoredStream, StreamEvents } from "../../storage.js";
import { readWhole, removeFile, writeOrCutOff } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import type { DataDirectory } from "./directory.js";
import { decodeSections, encodeSection, type NameLines, type NamesRead, type NamesSection } from "./names-file.js";
import { mergedNames, orderedRuns } from "../memory/ordered-names.js";

/** What the log of names goes by. */
export interface NameLogOptions extends DataDirectory {
  readonly events: EventEmitter<StreamEvents>;
  readonly log: Pick<Log, "debug">;
  readonly state: { readonly failure: unknown };
  /** What the journal had at the start: the batches from the first to the last, and these creations. */
  readonly recovered: {
    readonly firstBatch: number;
    readonly lastBatch: number;
    readonly unopened: { created(): Iterable<{ readonly name: string; readonly batch: number }> };
  };
  /** What has become durable since. */
  readonly changes: { readonly lastBatch: number };
  /** A file that is larger is not kept. */
  readonly maxBytes: number;
}

/** Names of streams as the log has them. */
export interface LoggedNames {
  /** Each in order. */
  readonly saved: readonly NameLines[];
  /** In any order. */
  readonly latest: readonly string[];
}

/** What changed is put into the file beside what is there, until that has grown to twice its size and this. */
const GROWTH_BYTES = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);

/**
 * Keeps the names of all streams in a file, for the first list after a start (docs/format.md, The names). Each
 * checkpoint adds to it, before the journal forgets who was made. Nothing relies on it: where the disk refuses it,
 * there is none, and the next start reads the directories.
 */
export class NameLog {
  readonly #options: NameLogOptions;
  /** `unread`: nobody has looked at the file. `whole`: it and the changes have all names. `none`: they have not. */
  #state: "unread" | "whole" | "none" = "unread";
  /** Names of streams made since the file was written: a list takes a fifth of the memory of a set. */
  #made: string[] = [];
  /** Those that are gone since, and were not made again. */
  #gone = new Set<string>();
  /** Where the file ends, and where its first section does. */
  #end = 0;
  #baseEnd = 0;
  /** One at a time. */
  #last: Promise<unknown> = Promise.resolve();
  /** Those that the journal brought; once the file has been read, only what that lacks. */
  #journaled: readonly { readonly name: string; readonly batch: number }[];
  #isEnded = false;

  constructor(options: NameLogOptions) {
    this.#options = options;
    this.#journaled = [...options.recovered.unopened.created()];
    const { events } = options;
    events.on("created", ({ name }: StoredStream) => this.#note(name, "made"));
    events.on("deleted", (name: string) => this.#note(name, "gone"));
  }

  /**
   * All names of streams, and of some that are gone; `null` where only the directories have them. Those that are made
   * from now on are not among them. Never rejects.
   */
  names(): Promise<LoggedNames | null> {
    return this.#next(null, async () => {
      const sections = await this.#read();
      if (this.#state !== "whole") return null;
      return { saved: sections.map(({ made }) => made), latest: this.#latest().made };
    });
  }

  /** A checkpoint is about to have the journal forget what the file lacks. Never rejects. */
  checkpoint(): Promise<void> {
    return this.#next(undefined, async () => {
      if (this.#state === "unread") await this.#read();
      if (this.#state !== "whole") return;
      if (this.#end > 2 * this.#baseEnd + GROWTH_BYTES) await this.#rewrite();
      else await this.#add();
    });
  }

  /**
   * Puts `names` in the place of all that the file has: all there are when it is called; `null` leaves it. Never
   * rejects.
   */
  replace(names: () => readonly string[] | null): Promise<void> {
    return this.#next(undefined, async () => {
      if (this.#state === "unread") await this.#read();
      const made = names();
      if (made === null) return;
      const section = { batch: this.#options.changes.lastBatch, made, gone: [] };
      this.#taken();
      this.#state = "whole";
      await this.#put(section);
    });
  }

  /** Writes nothing more; resolves when nothing is under way. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#last;
  }

  #note(name: string, change: "made" | "gone"): void {
    if (this.#state === "none") return;
    if (change === "gone") this.#gone.add(name);
    else {
      this.#made.push(name);
      this.#gone.delete(name);
    }
  }

  /**
   * Runs after all before it. When it fails, `otherwise` is the result, and nothing more is written to the file unless
   * all of it is replaced: the next start judges by its batch whether it counts.
   */
  #next<T>(otherwise: T, run: () => Promise<T>): Promise<T> {
    const { state } = this.#options;
    const ran = this.#last
      .then(() => (this.#isEnded || state.failure !== null ? otherwise : run()))
      .catch((error: unknown) => {
        this.#options.log.debug("the names were not saved", { fault: String(error) });
        this.#forget();
        return otherwise;
      });
    this.#last = ran;
    return ran;
  }

  #forget(): void {
    this.#state = "none";
    this.#taken();
  }

  /** What is known so far is on its way to the file; what comes from now on is not. */
  #taken(): void {
    this.#made = [];
    this.#gone = new Set();
    this.#journaled = [];
  }

  /** What has changed since the file was written. */
  #latest(): Omit<NamesSection, "batch"> {
    const made = new Set(this.#made);
    for (const { name } of this.#journaled) made.add(name);
    for (const name of this.#gone) made.delete(name);
    return { made: [...made], gone: [...this.#gone] };
  }

  /** Reads the file; the first time it finds out whether that counts. */
  async #read(): Promise<NamesRead["sections"]> {
    const { files, layout, directoryId, recovered, maxBytes } = this.#options;
    if (this.#state === "none" || (this.#state === "whole" && this.#end === 0)) return [];
    const bytes = await readWhole(files, layout.names);
    const { sections, baseEnd, end } = decodeSections(directoryId, bytes ?? NO_BYTES);
    if (this.#state === "whole") {
      if (end !== this.#end) throw new Error("the file of names is not what was written");
      return sections;
    }
    // Where there is none, the journal may have all batches, from the first on.
    const batch = sections.at(-1)?.batch ?? 0;
    // The journal has every creation that the file lacks.
    const counts = batch >= recovered.firstBatch - 1 && batch <= recovered.lastBatch && end <= maxBytes;
    if (counts) {
      [this.#state, this.#end, this.#baseEnd] = ["whole", end, baseEnd];
      this.#journaled = this.#journaled.filter((made) => made.batch > batch);
    } else this.#forget();
    if (counts || bytes === null) return sections;
    // It must not seem to count one day, when another way has led to its batch.
    await removeFile(files, layout.names);
    await files.syncDirectory(layout.root);
    return [];
  }

  /** Adds what changed to the file's end. */
  async #add(): Promise<void> {
    const { files, layout, directoryId, changes } = this.#options;
    const [{ made, gone }, batch] = [this.#latest(), changes.lastBatch];
    this.#taken();
    const section = { batch, made: await inOrder(made), gone: await inOrder(gone) };
    if (this.#end === 0) return this.#put(section);
    const bytes = await encodeSection(directoryId, section);
    const file = await files.open(layout.names, "log");
    try {
      await writeOrCutOff(file, bytes, this.#end);
    } finally {
      await file.close();
    }
    this.#end += bytes.length;
  }

  /** Writes the file anew, without what is gone. */
  async #rewrite(): Promise<void> {
    const sections = await this.#read();
    const [latest, batch] = [this.#latest(), this.#options.changes.lastBatch];
    this.#taken();
    const names = new Set<string>();
    for (const { made, gone } of sections) {
      for (const piece of gone.pieces()) for (const name of piece) names.delete(name);
      for (const piece of made.pieces()) {
        for (const name of piece) names.add(name);
        await nextTurn();
      }
    }
    for (const name of latest.gone) names.delete(name);
    for (const name of latest.made) names.add(name);
    await this.#put({ batch, made: await inOrder(names), gone: [] });
  }

  async #put(section: NamesSection): Promise<void> {
    const { files, layout, directoryId, maxBytes } = this.#options;
    const bytes = await encodeSection(directoryId, section);
    if (bytes.length > maxBytes) throw new Error("there are too many names");
    await replaceFile(files, layout.names, bytes);
    await files.syncDirectory(layout.root);
    this.#end = this.#baseEnd = bytes.length;
  }
}

async function inOrder(names: Iterable<string>): Promise<string[]> {
  return mergedNames(await orderedRuns(names));
}
