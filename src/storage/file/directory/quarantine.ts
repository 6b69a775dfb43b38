import { dirname, join, relative } from "node:path";
import { errorCode, readWhole, type Files } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { coveredSidecarPath, sidecarPath, type Layout } from "../format/layout.js";
import type { DataDirectory } from "./directory.js";
import type { StreamIdentity } from "../format/record.js";
import { claimedSidecar, decodeSidecar, encodeRefusal, encodeSidecar, isNotice } from "../format/sidecar.js";

/** What is known of a stream that is to be refused. */
interface RefusedStream {
  readonly batch?: number;
  readonly isSource?: boolean;
  /** The stream itself, where nothing of it is left; `null` where something is. */
  readonly lostWithAll?: StreamIdentity | null;
}

/** Keeps what is not what was written under `damaged/`, at the place that it had. Nothing there is ever overwritten. */
export class Quarantine {
  readonly #files: Files;
  readonly #layout: Layout;

  constructor({ files, layout }: Pick<DataDirectory, "files" | "layout">) {
    this.#files = files;
    this.#layout = layout;
  }

  /** Moves a file or a directory there, permanently; returns where it is. */
  async move(path: string): Promise<string> {
    const target = await this.#freePlace(path, null);
    await this.#files.makeDirectory(dirname(target));
    await this.#files.rename(path, target);
    await this.#syncUpwards(dirname(target));
    await this.#files.syncDirectory(dirname(path));
    return target;
  }

  /** Keeps `bytes` as a copy of the file at `path`, permanently; doing it again changes nothing. */
  async copy(path: string, bytes: Buffer): Promise<string> {
    const target = await this.#freePlace(path, bytes);
    await this.#files.makeDirectory(dirname(target));
    await replaceFile(this.#files, target, bytes);
    await this.#syncUpwards(dirname(target));
    return target;
  }

  /** What was kept of the file at `path`. */
  async *copiesOf(path: string): AsyncGenerator<Buffer> {
    for (let count = 1; ; count += 1) {
      const kept = await this.#bytesAt(this.#placeOf(path, count));
      if (kept === null) return;
      if (kept !== "other") yield kept;
    }
  }

  /**
   * Has a stream refused until somebody decides, and keeps its sidecar here. A stream that its forks need (it lists
   * them, or `isSource`) is closed instead, unless it is only claimed. Either way it asks the journal for nothing up to
   * `batch`.
   */
  async refuse(
    streamDirectory: string,
    reason: string,
    { batch = 0, isSource = false, lostWithAll = null }: RefusedStream = {},
  ): Promise<void> {
    const path = sidecarPath(streamDirectory);
    const bytes = await readWhole(this.#files, path);
    const kept =
      bytes !== null && isNotice(bytes) ? await readWhole(this.#files, coveredSidecarPath(streamDirectory)) : null;
    const read = bytes === null ? null : decodeSidecar(kept ?? bytes);
    const sidecar = read?.kind === "sound" ? { ...read.sidecar, batch: Math.max(read.sidecar.batch, batch) } : null;
    if (sidecar !== null && !sidecar.claimed && (isSource || sidecar.forks !== null)) {
      sidecar.state.closed = true;
      const closed = encodeSidecar(sidecar);
      if (bytes?.equals(closed) === true) return;
      if (bytes !== null) await this.copy(path, bytes);
      return this.replaceSidecar(streamDirectory, closed);
    }
    await this.#files.makeDirectory(streamDirectory);
    if (kept !== null && bytes !== null) await this.copy(path, bytes);
    if (bytes !== null) await this.copy(path, sidecar === null ? bytes : encodeSidecar(sidecar));
    // What else is kept here is of an earlier stream of the name.
    if (lostWithAll !== null)
      await this.copy(path, encodeSidecar({ ...claimedSidecar(lostWithAll), batch: sidecar?.batch ?? batch }));
    await this.replaceSidecar(streamDirectory, encodeRefusal(reason));
  }

  /** Puts a sidecar in its place, permanently. */
  async replaceSidecar(streamDirectory: string, bytes: Buffer): Promise<void> {
    await replaceFile(this.#files, sidecarPath(streamDirectory), bytes);
    await this.#files.syncDirectory(streamDirectory);
    await this.#files.syncDirectory(dirname(streamDirectory));
  }

  /** A place that nothing has, or that has just these bytes. */
  async #freePlace(path: string, bytes: Buffer | null): Promise<string> {
    for (let count = 1; ; count += 1) {
      const target = this.#placeOf(path, count);
      const taken = await this.#bytesAt(target);
      if (taken === null || (bytes !== null && taken !== "other" && taken.equals(bytes))) return target;
    }
  }

  #placeOf(path: string, count: number): string {
    const wanted = join(this.#layout.damaged, relative(this.#layout.root, path));
    return count === 1 ? wanted : `${wanted}.${count}`;
  }

  async #bytesAt(path: string): Promise<Buffer | "other" | null> {
    try {
      return await readWhole(this.#files, path);
    } catch (error) {
      if (errorCode(error) === "EISDIR") return "other";
      throw error;
    }
  }

  /** Makes entries permanent from `directory` up to the root: each may be new. */
  async #syncUpwards(directory: string): Promise<void> {
    for (let path = directory; path.length >= this.#layout.root.length; path = dirname(path))
      await this.#files.syncDirectory(path);
  }
}
