import type { EngineParts } from "../disk/engine-state.js";

/** The directories of stream directories whose entries have changed since their last sync. */
export class UnsyncedShards {
  readonly #parts: EngineParts;
  readonly #shards = new Set<string>();

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  /** Notes that the entry of a stream's directory changed. */
  note(streamDirectory: string): void {
    this.#shards.add(this.#parts.layout.shard(streamDirectory));
  }

  /** Makes the entries permanent. */
  async sync(): Promise<void> {
    for (const shard of [...this.#shards]) {
      this.#shards.delete(shard);
      try {
        await this.#parts.files.syncDirectory(shard);
        this.#parts.state.syncs.progressed();
      } catch (error) {
        this.#shards.add(shard);
        throw error;
      }
    }
  }
}
