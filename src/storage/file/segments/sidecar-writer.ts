import { asUnreadable } from "../directory/catalog.js";
import type { EngineParts } from "../disk/engine-state.js";
import { readWhole, removeFile } from "../disk/files.js";
import { putReplacement, replaceFile, writeReplacement } from "../disk/replacement.js";
import { coveredSidecarPath, replacementPath, sidecarPath } from "../format/layout.js";
import { claimedSidecar, encodeNotice, encodeSidecar, isNotice, type Sidecar } from "../format/sidecar.js";
import type { FileStream } from "../memory/file-stream.js";
import type { UnsyncedShards } from "./unsynced-shards.js";

/** Writes what a stream's directory says of it. Nothing else writes the stream's files meanwhile. */
export class SidecarWriter {
  readonly #parts: EngineParts;
  readonly #shards: UnsyncedShards;

  constructor(parts: EngineParts, shards: UnsyncedShards) {
    this.#parts = parts;
    this.#shards = shards;
  }

  /** Makes the stream's directory where it is missing. */
  async makeDirectory({ directory, disk }: FileStream): Promise<void> {
    if (disk.hasDirectory) return;
    await this.#parts.files.makeDirectory(directory);
    this.#shards.note(directory);
    disk.hasDirectory = true;
  }

  /** Takes the directory for a stream whose creation may not be durable yet: its files can't be anyone else's. */
  async claim(stream: FileStream): Promise<void> {
    const { files, layout } = this.#parts;
    await this.makeDirectory(stream);
    if (!stream.disk.hasSidecar) {
      await this.write(stream, claimedSidecar(stream));
      await this.put(stream);
    }
    if (stream.disk.hasEntry) return;
    await files.syncDirectory(layout.shard(stream.directory));
    // The sidecar that says whose the directory is: a process that was killed may not have made it permanent.
    if (stream.disk.hasUnsyncedSidecar) await files.syncDirectory(stream.directory);
    stream.disk.hasEntry = true;
  }

  /** Writes a sidecar beside the one that is there. */
  write({ directory }: FileStream, sidecar: Sidecar): Promise<void> {
    return writeReplacement(this.#parts.files, sidecarPath(directory), encodeSidecar(sidecar));
  }

  /** Puts the sidecar that was written in its place, permanently. */
  async put(stream: FileStream): Promise<void> {
    const { files } = this.#parts;
    await putReplacement(files, sidecarPath(stream.directory));
    await files.syncDirectory(stream.directory);
    stream.disk.hasSidecar = true;
    if (!stream.disk.hasNotice) return;
    stream.disk.hasNotice = false;
    await removeFile(files, coveredSidecarPath(stream.directory));
    // The journal forgets the stream now, and nobody would look for the file again.
    await files.syncDirectory(stream.directory);
  }

  /** Removes what a process that ended has left beside a sidecar. */
  async removeLeft({ directory }: FileStream): Promise<void> {
    const { files } = this.#parts;
    await removeFile(files, replacementPath(sidecarPath(directory)));
    await removeFile(files, coveredSidecarPath(directory));
  }

  /** Tells in place of the sidecar that the stream is damaged: see {@link SegmentWriter.postNotice}. */
  async postNotice(stream: FileStream, damage: string): Promise<void> {
    const { files } = this.#parts;
    const { directory } = stream;
    await files.makeDirectory(directory);
    this.#shards.note(directory);
    stream.disk.hasDirectory = true;
    const path = sidecarPath(directory);
    const sidecar = await readWhole(files, path).catch(asUnreadable(stream.name, path));
    await writeReplacement(files, path, encodeNotice(stream, damage));
    // What a notice stands for is beside it, and nothing else.
    if (sidecar === null) await removeFile(files, coveredSidecarPath(directory));
    else if (!isNotice(sidecar)) await replaceFile(files, coveredSidecarPath(directory), sidecar);
    await files.syncDirectory(directory);
    await putReplacement(files, path);
    await files.syncDirectory(directory);
    stream.disk.hasNotice = true;
  }
}
