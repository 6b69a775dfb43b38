import type { Position } from "../../storage.js";
import type { Sidecar } from "../format/sidecar.js";

/** What the forks of a stream need of it, and what it needs as a fork of its source. */
export class StreamTies<Stream> {
  /** The stream that it was forked from, once its lineage is set. */
  parent: Stream | null = null;
  /** Streams in memory that were forked from it, and so need it there. */
  dependents = 0;
  /** Forks on their way to the disk. */
  pendingForks = 0;
  /** Its forks that are not gone, by id: where the bytes end that each needs. `null` until the first. */
  forks: Map<string, Position> | null;
  /** Whether it is deleted, but for what its forks need. */
  softDeleted: boolean;
  /** Deletions of it that are on their way: what comes behind them in the journal would bring it back. */
  deletions = 0;
  /** Forks that need bytes which are still there. While there is one, nothing is dropped, so none stops to count. */
  #pins = 0;

  /** `sidecar` is what the disk says of the stream, which begins at `earliest`. */
  constructor(sidecar: Sidecar | null, earliest: Position) {
    this.forks = sidecar?.forks ?? null;
    this.softDeleted = sidecar?.softDeleted ?? false;
    for (const neededBefore of this.forks?.values() ?? []) if (neededBefore > earliest) this.#pins += 1;
  }

  get forkCount(): number {
    return this.pendingForks + (this.forks?.size ?? 0);
  }

  /** Whether a fork needs what would be dropped. */
  get holdsTrims(): boolean {
    return this.pendingForks > 0 || this.#pins > 0;
  }

  /** The fork `id` needs the bytes from `earliest` up to `neededBefore`, and no others. */
  link(id: string, neededBefore: Position, earliest: Position): void {
    this.unlink(id, earliest);
    (this.forks ??= new Map()).set(id, neededBefore);
    if (neededBefore > earliest) this.#pins += 1;
  }

  /** The fork `id` is gone. */
  unlink(id: string, earliest: Position): void {
    if ((this.forks?.get(id) ?? 0) > earliest) this.#pins -= 1;
    this.forks?.delete(id);
  }
}
