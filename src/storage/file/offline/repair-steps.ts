import { join } from "node:path";
import type { Log } from "../../../ops/log.js";
import type { Position } from "../../storage.js";
import type { DataDirectory } from "../directory/directory.js";
import { Quarantine } from "../directory/quarantine.js";
import { isShardName, sidecarPath } from "../format/layout.js";
import type { Sidecar } from "../format/sidecar.js";
import { ForkRelations } from "../survey/fork-relations.js";
import { surveyJournal, type Survey } from "../survey/journal-survey.js";
import { checkStream, type CheckedStream } from "../survey/stream-check.js";

/** Something that was done, or is to be done, or that nobody but the operator can do. */
export interface RepairLine {
  readonly kind: "done" | "to do" | "left";
  readonly stream: string | null;
  readonly file: string;
  readonly what: string;
}

/** How many lines of each kind there were. */
export interface RepairSummary {
  readonly done: number;
  readonly toDo: number;
  readonly left: number;
}

/** A directory to be repaired, which is locked when `apply` is set, and how. */
export interface RepairOptions extends DataDirectory {
  /** Whether anything is changed. */
  readonly apply: boolean;
  /** Names of streams, or patterns, that are to be served as they are although they may have lost their end. */
  readonly acceptLoss?: readonly string[];
  readonly nowMs: number;
  readonly log: Log;
  readonly say: (line: RepairLine) => void;
}

/** The steps of one repair: each is done and said, or only said. Knows what later steps build on. */
export class RepairSteps {
  readonly options: RepairOptions;
  readonly quarantine: Quarantine;
  /** Who was forked from whom, once all streams were looked at. */
  relations: ForkRelations;
  /** The highest batch of all sidecars that were seen: the journal has had so many. */
  knownBatch = 0;
  /** Sidecars that would be there if anything were done, by directory. */
  readonly planned = new Map<string, Sidecar>();
  readonly #counts = { done: 0, "to do": 0, left: 0 };

  constructor(options: RepairOptions) {
    this.options = options;
    this.quarantine = new Quarantine(options);
    this.relations = new ForkRelations(options.layout);
  }

  get summary(): RepairSummary {
    return { done: this.#counts.done, toDo: this.#counts["to do"], left: this.#counts.left };
  }

  /** Leaves something to the operator. */
  leave(stream: string | null, file: string, what: string): void {
    this.#say("left", stream, file, what);
  }

  /** Says of a step that it was done, or is to be done. */
  did(stream: string | null, file: string, what: string): void {
    this.#say(this.options.apply ? "done" : "to do", stream, file, what);
  }

  /** Does a step and says so; or only says it. */
  async take(stream: string | null, file: string, what: string, run: () => Promise<unknown>): Promise<void> {
    if (this.options.apply) await run();
    this.did(stream, file, what);
  }

  #say(kind: RepairLine["kind"], stream: string | null, file: string, what: string): void {
    this.#counts[kind] += 1;
    this.options.say({ kind, stream, file, what });
  }

  /** The journal as it is now, by all that sidecars tell of it. */
  survey(): Promise<Survey> {
    return surveyJournal(this.options, this.knownBatch);
  }

  /** The directories of all streams. */
  async *directories(): AsyncGenerator<string> {
    const { files, layout } = this.options;
    for (const shard of await files.list(layout.streams)) {
      if (!isShardName(shard)) continue;
      for (const entry of await files.list(join(layout.streams, shard))) yield join(layout.streams, shard, entry);
    }
  }

  /** All streams, but for what is in their segments. */
  async *streams(): AsyncGenerator<CheckedStream> {
    for await (const directory of this.directories()) yield checkStream(this.options, directory);
  }

  /** A stream with its segments; those that end at or before `trimmedTo` may be gone. */
  checkSegments(directory: string, trimmedTo: Position): Promise<CheckedStream> {
    return checkStream(this.options, directory, { trimmedTo, readSegments: true });
  }

  /** Puts a sidecar in its place, and keeps what was there. */
  async replaceSidecar({ directory, sidecarBytes }: CheckedStream, bytes: Buffer): Promise<void> {
    if (sidecarBytes !== null) await this.quarantine.copy(sidecarPath(directory), sidecarBytes);
    await this.quarantine.replaceSidecar(directory, bytes);
  }

  /** Whether the stream of this id has forks. */
  isSource(id: string): boolean {
    return this.relations.isSource(id);
  }
}
