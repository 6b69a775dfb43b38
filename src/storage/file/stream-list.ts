import type { EventEmitter } from "node:events";
import type { NameRange } from "../../protocol/names/name-range.js";
import {
  DamagedStreamError,
  type ForkOrigin,
  type MatchingNames,
  type StoredStream,
  type StreamEvents,
  type StreamList,
} from "../storage.js";
import { readSidecar } from "./directory/catalog.js";
import type { Sidecar } from "./format/sidecar.js";
import { FileStream } from "./memory/file-stream.js";
import { Lineage } from "./memory/lineage.js";
import type { Restores } from "./memory/restores.js";
import { NameIndex, type NameIndexOptions } from "./name-index.js";
import type { StreamFiles } from "./segments/stream-files.js";
import type { StreamLoader } from "./segments/stream-loader.js";

/** Where a list finds streams. */
export interface StreamListOptions extends Pick<NameIndexOptions, "nameLog" | "maxBytes"> {
  /** Those in memory, by name. */
  readonly streams: ReadonlyMap<string, FileStream>;
  /** Those that the journal goes on with and nobody has opened. */
  readonly unopened: { has(name: string): boolean; names(): Iterable<string> };
  readonly loader: Pick<StreamLoader, "find">;
  readonly journal: { readonly lastBatch: number };
  readonly events: EventEmitter<StreamEvents>;
  /** The directory's: offsets of what is in no memory tell writers apart as well. */
  readonly restores: Restores;
}

/** Lists streams by name: the names are in memory once they are asked for, the rest is looked up for each. */
export class FileStreamList implements StreamList {
  readonly events: EventEmitter<StreamEvents>;
  readonly isShared = false;
  readonly #parts: Pick<StreamFiles, "files" | "layout" | "log">;
  readonly #options: StreamListOptions;
  readonly #names: NameIndex;
  /** Sources that are being looked at, by their ids. */
  readonly #sources = new Map<string, Promise<FileStream | null>>();

  constructor(parts: Pick<StreamFiles, "files" | "layout" | "log">, options: StreamListOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#names = new NameIndex({ ...parts, ...options });
    this.events = options.events;
  }

  names(range: NameRange, count: number): Promise<readonly string[]> {
    return this.#names.slice(range, count);
  }

  matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null> {
    return this.#names.matching(patterns);
  }

  async look(name: string): Promise<StoredStream | null> {
    try {
      const { streams, unopened, loader } = this.#options;
      // It comes into memory soon anyway.
      if (unopened.has(name)) await loader.find(name);
      const known = streams.get(name);
      if (known !== undefined) return await this.#inMemory(known);
      const sidecar = await this.#readSidecar(name);
      // It may have come into memory meanwhile, and what was read be old.
      const since = streams.get(name);
      if (since !== undefined) return await this.#inMemory(since);
      if (sidecar === null || sidecar.claimed || sidecar.softDeleted) return null;
      return await this.#withLineage(this.#ofSidecar(sidecar));
    } catch (error) {
      // Whoever asks for the stream itself is told.
      if (error instanceof DamagedStreamError) return null;
      throw error;
    }
  }

  async #inMemory(stream: FileStream): Promise<StoredStream | null> {
    if (!stream.created || stream.standing !== "live" || stream.damage !== null) return null;
    // What only recovery has brought into memory does not know its source yet.
    return stream.handedOut ? stream : this.#withLineage(copyOf(stream));
  }

  async #readSidecar(name: string): Promise<Sidecar | null> {
    const { files, layout } = this.#parts;
    const read = await readSidecar(files, name, layout.streamDirectory(name), this.#options.journal.lastBatch);
    if (read instanceof DamagedStreamError) throw read;
    return read;
  }

  /** A fork has its source's offsets up to its point: they need the source's segments. `null` where those are lost. */
  async #withLineage(stream: FileStream): Promise<FileStream | null> {
    const { forkedFrom } = stream.config;
    if (forkedFrom === null) return stream;
    const { point } = forkedFrom;
    const isOwn = stream.state.tail > point && (stream.earliest === 0 || stream.earliest > point);
    if (isOwn) return stream;
    const source = await this.#source(forkedFrom);
    if (source === null) return null;
    stream.lineage = Lineage.of(source, point);
    return stream;
  }

  /** A fork's source, also a deleted one, with its lineage. Forks that are looked at together share its look. */
  #source({ name, id }: Pick<ForkOrigin, "name" | "id">): Promise<FileStream | null> {
    const underWay = this.#sources.get(id);
    if (underWay !== undefined) return underWay;
    const found = this.#findSource(name, id).finally(() => this.#sources.delete(id));
    this.#sources.set(id, found);
    return found;
  }

  async #findSource(name: string, id: string): Promise<FileStream | null> {
    const { streams, unopened, loader } = this.#options;
    if (unopened.has(name)) await loader.find(name);
    const known = streams.get(name);
    if (known !== undefined && known.id !== id) return null;
    if (known?.handedOut === true) return known;
    if (known !== undefined) return this.#withSources(copyOf(known));
    const sidecar = await this.#readSidecar(name);
    if (sidecar?.id !== id) return null;
    return this.#withSources(this.#ofSidecar(sidecar));
  }

  async #withSources(stream: FileStream): Promise<FileStream | null> {
    const { forkedFrom } = stream.config;
    if (forkedFrom === null) return stream;
    const source = await this.#source(forkedFrom);
    if (source === null) return null;
    stream.lineage = Lineage.of(source, forkedFrom.point);
    return stream;
  }

  /** A stream as its sidecar has it, which memory does not keep. */
  #ofSidecar(sidecar: Sidecar): FileStream {
    const stream = new FileStream(sidecar, this.#parts.layout.streamDirectory(sidecar.name), sidecar);
    stream.restores = this.#options.restores;
    stream.created = true;
    return stream;
  }
}

/** The same stream, for a lineage of its own. */
function copyOf(stream: FileStream): FileStream {
  const copy = new FileStream(stream, stream.directory, null);
  copy.state.tail = stream.state.tail;
  copy.state.closed = stream.state.closed;
  copy.state.touchedAtMs = stream.state.touchedAtMs;
  copy.state.producers = stream.state.producers;
  copy.segments = stream.segments;
  copy.earliestPlace = stream.earliestPlace;
  copy.restores = stream.restores;
  copy.created = true;
  return copy;
}
