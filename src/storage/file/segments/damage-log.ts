import { basename } from "node:path";
import { DamageFindings } from "../../damage-findings.js";
import type { DamagedRejection, DamagedStreamError, MaybePromise, Settlement } from "../../storage.js";
import { FileStream } from "../memory/file-stream.js";
import type { EngineParts } from "../disk/engine-state.js";
import { newStreamId } from "../../stream-id.js";

/** Hands the deletion of a stream to the journal, or says why that can't be. */
type Remove = (stream: FileStream, settle: (how: Settlement) => void) => MaybePromise<DamagedRejection | null>;

/** What a stream's directory says of damage, in the place of its sidecar. */
export function noticeOf({ file, problem }: DamagedStreamError): string {
  return `${basename(file)}: ${problem}; what it lacks is kept in the journal`;
}

/** A content type that no stream has: a deletion with it is of whatever has the name. */
export const ANYBODYS = "";

/** Streams that can't be served: says so once in the log, and gets them out of the way when they are deleted. */
export class DamageLog {
  readonly #parts: Pick<EngineParts, "log" | "layout">;
  readonly #findings: DamageFindings;
  readonly #deletions = new Map<string, Promise<Settlement | DamagedRejection>>();

  constructor(parts: Pick<EngineParts, "log" | "layout">) {
    this.#parts = parts;
    this.#findings = new DamageFindings(parts.log);
  }

  /** Logs `error` if it is a finding about a stream, unless it is that file's last one; returns it, to be thrown. */
  told(error: unknown): unknown {
    // What a stream's directory says of what was found has been logged, if it was found since the start.
    return this.#findings.told(error, ({ problem }, before) => problem === noticeOf(before));
  }

  /** Streams with findings, as far as they are remembered. */
  get streamCount(): number {
    return this.#findings.streamCount;
  }

  /** Passes on how a deletion ends; the findings about a stream that is deleted are forgotten. */
  forgetting(name: string, settle: (how: Settlement) => void): (how: Settlement) => void {
    return (how) => {
      if (how === "durable") this.#findings.forget(name);
      settle(how);
    };
  }

  /** Passes on what `work` gives; a finding about a stream that it throws is logged like those of {@link told}. */
  telling<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw this.told(error);
    });
  }

  /** Resolves when no deletion of a damaged stream of this name is on its way to the disk. */
  async deleted(name: string): Promise<void> {
    await Promise.allSettled([this.#deletions.get(name)]);
  }

  /** Deletes a damaged stream: `known` if recovery brought it into memory. Requests for the name wait for it. */
  delete(name: string, known: FileStream | null, remove: Remove): Promise<Settlement | DamagedRejection> {
    const underway = this.#deletions.get(name);
    if (underway !== undefined) return underway;
    const deletion = this.#delete(known ?? this.#unknown(name), remove).finally(() => this.#deletions.delete(name));
    this.#deletions.set(name, deletion);
    return deletion;
  }

  async #delete(stream: FileStream, remove: Remove): Promise<Settlement | DamagedRejection> {
    let settle: (how: Settlement) => void = () => undefined;
    const settled = new Promise<Settlement>((resolve) => (settle = resolve));
    const rejection = await remove(stream, this.forgetting(stream.name, settle));
    return rejection ?? settled;
  }

  /** Which incarnation it was, nobody can say: a new one takes the name, to be deleted with all that is there. */
  #unknown(name: string): FileStream {
    const id = newStreamId();
    const config = { contentType: ANYBODYS, createdAtMs: 0, ttlSeconds: null, expiresAtMs: null, forkedFrom: null };
    return new FileStream({ id, name, config }, this.#parts.layout.streamDirectory(name), null);
  }
}
