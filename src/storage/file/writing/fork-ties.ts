import { EventEmitter } from "node:events";
import {
  DamagedStreamError,
  type DamagedRejection,
  type Position,
  type Rejection,
  type Settlement,
  type StreamConfig,
} from "../../storage.js";
import type { FileStream, Place } from "../memory/file-stream.js";
import { emptyChange } from "../journal/frame-encoder.js";
import type { Admission } from "./admission.js";
import type { JournalEntry } from "../journal/journal-entry.js";
import { sidecarPath } from "../format/layout.js";
import { ForkSearch, type ForksPlace } from "./forks-on-disk.js";
import { Lineage } from "../memory/lineage.js";
import { RecordKind, type RecordKindCode } from "../format/record.js";
import type { StreamFiles } from "../segments/stream-files.js";
import type { StreamLoader } from "../segments/stream-loader.js";

/** Where sources are found, and where changes of them go. */
export interface ForkTiesOptions extends Pick<StreamFiles, "clock" | "log">, Omit<ForksPlace, "isKnown"> {
  /** The streams in memory, by name. */
  readonly streams: ReadonlyMap<string, FileStream>;
  /** Streams that the journal goes on with, and that nobody has opened since the start. */
  readonly unopened: { has(name: string): boolean; forksOf(source: string): Iterable<string> };
  readonly loader: StreamLoader;
  readonly admission: Admission;
}

/** Forks that a line of the log names. */
const MAX_NAMED = 10;

/** Forks of a stream, and a sidecar that may be of another. */
interface Forks {
  readonly names: readonly string[];
  readonly doubt: string | null;
}

interface ForkTieEvents {
  /** Nothing but its forks kept this stream in memory, and the last of them has left. */
  unneeded: [stream: FileStream];
}

/**
 * What forks need of the streams they come from: in memory, that the source stays there while a fork does; on disk,
 * that its bytes stay until the last fork is gone. Each fork is known to its direct source, which is in turn a fork of
 * its own source; the records of both sides of a change are written together.
 */
export class ForkTies extends EventEmitter<ForkTieEvents> {
  readonly #options: ForkTiesOptions;
  readonly #search: ForkSearch;
  /** Streams that were kept for their forks, and whose removal is on its way; what settles with that. */
  readonly #collected = new Map<FileStream, Promise<void>>();

  constructor(options: ForkTiesOptions) {
    super();
    this.#options = options;
    const { streams, unopened } = options;
    this.#search = new ForkSearch({ ...options, isKnown: (name) => streams.has(name) || unopened.has(name) });
  }

  /** The source of a fork that is to be made; throws where it is not a live stream in memory. */
  sourceOf({ forkedFrom }: StreamConfig): FileStream | null {
    if (forkedFrom === null) return null;
    const source = this.#options.streams.get(forkedFrom.name);
    if (source?.id === forkedFrom.id && source.standing === "live") return source;
    throw new RangeError(`the source ${JSON.stringify(forkedFrom.name)} is not there`);
  }

  /** Ties a new fork to its source, which learns of it by the companion that is returned. */
  tie(fork: FileStream, source: FileStream | null): JournalEntry | null {
    if (source === null) return null;
    tie(fork, source);
    source.ties.pendingForks += 1;
    return companionOf(source, RecordKind.link, fork, fork.lineage.end);
  }

  /** The creation of a fork of `source` has settled. */
  created(source: FileStream | null): void {
    if (source === null) return;
    source.ties.pendingForks -= 1;
    this.collect(source);
  }

  /** Finds a loaded stream's sources, up to the first that is tied to its own. Throws {@link DamagedStreamError}. */
  async resolve(stream: FileStream): Promise<void> {
    while (isUntied(stream) && this.#isInMemory(stream)) {
      const chain = [stream];
      for (let top = stream; isUntied(top); chain.push(top)) {
        top = await this.#loadSource(top);
        if (chain.includes(top))
          throw new DamagedStreamError(top.name, sidecarPath(top.directory), "it was forked from itself");
      }
      this.#tieAll(chain);
    }
  }

  /** A stream leaves memory, or is gone: its source may leave too. */
  drop(fork: FileStream): void {
    const source = fork.ties.parent;
    if (source === null) return;
    fork.ties.parent = null;
    this.#unneededByOne(source);
  }

  /** One less needs the source in memory. */
  #unneededByOne(source: FileStream): void {
    source.ties.dependents -= 1;
    const isAlone = source.ties.dependents === 0 && !source.handedOut;
    if (isAlone && this.#isInMemory(source)) this.emit("unneeded", source);
  }

  /** What a trim up to `place` means for the source: a fork that keeps nothing inherited needs nothing of it. */
  weaning(fork: FileStream, place: Place): JournalEntry | null {
    const { lineage, earliest } = fork;
    const { parent } = fork.ties;
    const isWeaned = earliest < lineage.end && place.position >= lineage.end;
    return parent !== null && isWeaned ? companionOf(parent, RecordKind.link, fork, 0) : null;
  }

  /** Submits the deletion of a stream; one with forks is kept for them. */
  delete(stream: FileStream, settle: (how: Settlement) => void): Rejection | null {
    const { admission, clock } = this.#options;
    if (stream.forkCount === 0) return this.#remove(stream, settle);
    const rejection = admission.admitFreeing();
    if (rejection === null) admission.put(stream, RecordKind.softDelete, emptyChange(clock.nowMs()), settle);
    return rejection;
  }

  /**
   * The same for a stream that can't be loaded. What a damaged one says of its forks can't be relied on: all streams
   * are looked through, and while one was forked from it, or may have been, it stays, as a repair may bring it back.
   * Its source learns of the deletion if it can be found.
   */
  async deleteDamaged(stream: FileStream, settle: (how: Settlement) => void): Promise<DamagedRejection | null> {
    const isKnown = this.#isInMemory(stream);
    const isDamaged = !isKnown || stream.damage !== null;
    // One that is in memory stays there meanwhile.
    stream.ties.dependents += 1;
    try {
      if (isDamaged || stream.ties.softDeleted) {
        const forks = await this.#findForks(stream);
        if (forks !== null) return this.#needed(stream, forks);
      }
      if (isKnown) await this.resolve(stream).catch(ifDamaged);
      // Another has come into memory, or this one is gone: it is looked for anew.
      if (this.#options.streams.get(stream.name) !== (isKnown ? stream : undefined)) return "overloaded";
      if (!isDamaged && !stream.ties.softDeleted) return this.delete(stream, settle);
      // Whatever is there in its place goes.
      if (isDamaged) stream.disk.hasDirectory = true;
      return this.#remove(stream, settle);
    } finally {
      this.#unneededByOne(stream);
    }
  }

  #needed({ name }: FileStream, { names, doubt }: Forks): "needed" {
    const fields = { stream: name, count: names.length, forks: JSON.stringify(names.slice(0, MAX_NAMED)) };
    const more = doubt === null ? fields : { ...fields, unclear: doubt };
    this.#options.log.warn("a damaged stream is not deleted while forks may need its bytes", more);
    return "needed";
  }

  /** What needs the bytes of a stream, or may; `null` where nothing does. */
  async #findForks(stream: FileStream): Promise<Forks | null> {
    const before = this.#forksInMemory(stream.name);
    // One that left memory before that is on disk; one that came into it since is found after it.
    const { names: onDisk, isSource, unread, silent } = await this.#search.forksOf(stream.name);
    const names = [...new Set([...before, ...onDisk, ...this.#forksInMemory(stream.name)])];
    const mayBeSource = this.#isInMemory(stream) && stream.forkCount > 0 ? true : isSource;
    // A list of forks has no names: only where there is one that nothing is known of, somebody may stand in it.
    const doubt = mayBeSource === true ? (unread ?? silent) : mayBeSource === null ? unread : null;
    return names.length > 0 || doubt !== null ? { names, doubt } : null;
  }

  #forksInMemory(source: string): string[] {
    const { streams, unopened } = this.#options;
    const open = [...streams.values()].filter(({ config, deleted }) => !deleted && config.forkedFrom?.name === source);
    return [...open.map(({ name }) => name), ...unopened.forksOf(source)];
  }

  /** Deletes a stream that was kept for its forks when none is left. What is not taken now is swept later. */
  collect(stream: FileStream): void {
    if (!stream.ties.softDeleted || stream.deleted || stream.ties.deletions > 0 || stream.forkCount > 0) return;
    const removal = new Promise<void>((resolve) => {
      if (this.#remove(stream, () => resolve()) !== null) resolve();
    });
    this.#collected.set(stream, removal);
    void removal.then(() => this.#collected.delete(stream));
  }

  /** Resolves when the removals have settled that take away what a stream is kept for; `null` where one stays. */
  whenFreed(stream: FileStream): Promise<void> | null {
    const removal = this.#removalBefore(stream);
    // Each removal of a row of forks is submitted when the one before it is durable.
    return removal === null ? null : removal.then(() => this.whenFreed(stream) ?? undefined);
  }

  /** The removal of a stream that is kept for its forks, or the last of those that take all these away. */
  #removalBefore(stream: FileStream): Promise<void> | null {
    const going = new Map<FileStream, number>();
    for (const [collected, removal] of this.#collected) {
      if (collected === stream) return removal;
      // Up the row, as far as this is the last fork of each that does not go yet.
      for (let source = collected.ties.parent; source !== null; source = source.ties.parent) {
        const count = (going.get(source) ?? 0) + 1;
        going.set(source, count);
        if (!source.ties.softDeleted || count < source.forkCount) break;
        if (source === stream) return removal;
      }
    }
    return null;
  }

  #remove(stream: FileStream, settle: (how: Settlement) => void): Rejection | null {
    const { admission, clock } = this.#options;
    const rejection = admission.admitFreeing();
    if (rejection !== null) return rejection;
    const source = stream.ties.parent ?? this.#sourceInMemory(stream);
    const unlinking = source === null ? null : companionOf(source, RecordKind.unlink, stream, 0);
    stream.ties.deletions += 1;
    if (source !== null) source.ties.dependents += 1;
    const settled = (how: Settlement): void => {
      stream.ties.deletions -= 1;
      if (source !== null) this.#unneededByOne(source);
      settle(how);
    };
    admission.put(stream, RecordKind.delete, emptyChange(clock.nowMs()), settled, unlinking);
    return null;
  }

  /** The source of a fork that is not tied to it, as it or one further up is damaged. */
  #sourceInMemory({ config: { forkedFrom } }: FileStream): FileStream | null {
    const source = forkedFrom === null ? undefined : this.#options.streams.get(forkedFrom.name);
    return source !== undefined && source.id === forkedFrom?.id ? source : null;
  }

  async #loadSource(fork: FileStream): Promise<FileStream> {
    const origin = fork.config.forkedFrom;
    const source = origin === null ? null : await this.#options.loader.find(origin.name);
    if (source === null || source.id !== origin?.id) {
      throw new DamagedStreamError(
        fork.name,
        sidecarPath(fork.directory),
        `its source ${JSON.stringify(origin?.name)} is missing`,
      );
    }
    if (source.damage !== null) throw source.damage;
    return source;
  }

  /** From the top down, as far as all are still in memory: while one was loaded, another may have left. */
  #tieAll(chain: readonly FileStream[]): void {
    for (let index = chain.length - 1; index > 0; index -= 1) {
      const [fork, source] = [chain[index - 1], chain[index]];
      if (fork === undefined || source === undefined || !this.#isInMemory(fork) || !this.#isInMemory(source)) return;
      if (isUntied(fork)) tie(fork, source);
    }
  }

  #isInMemory(stream: FileStream): boolean {
    return this.#options.streams.get(stream.name) === stream;
  }
}

/** Both are in memory, and stay there together. */
function tie(fork: FileStream, source: FileStream): void {
  fork.ties.parent = source;
  fork.lineage = Lineage.of(source, fork.config.forkedFrom?.point ?? 0);
  source.ties.dependents += 1;
}

/** A source that can't be found keeps what it has for its fork, until a repair. */
function ifDamaged(error: unknown): void {
  if (!(error instanceof DamagedStreamError)) throw error;
}

/** Whether a fork's source was not found, or not looked for yet. */
export function isUntied(stream: FileStream): boolean {
  return stream.config.forkedFrom !== null && stream.ties.parent === null && !stream.deleted;
}

/** A change of the source that is written together with one of the fork. */
function companionOf(stream: FileStream, kind: RecordKindCode, fork: FileStream, position: Position): JournalEntry {
  const change = { ...emptyChange(0), payload: Buffer.from(fork.id) };
  return {
    kind,
    stream,
    change,
    position,
    segmentStart: 0,
    bypassed: null,
    generation: 0,
    settle: null,
    companion: null,
  };
}
