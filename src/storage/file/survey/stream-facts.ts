import type { ForkOrigin, Position } from "../../storage.js";
import { readSidecarIn } from "../directory/catalog.js";
import type { DataDirectory } from "../directory/directory.js";
import { Quarantine } from "../directory/quarantine.js";
import type { Files } from "../disk/files.js";
import type { Survey } from "./journal-survey.js";
import type { JournaledStream } from "./journaled-stream.js";
import { segmentStartOf, sidecarPath, type Layout } from "../format/layout.js";
import type { Sidecar } from "../format/sidecar.js";
import { attempt, type CheckedStream } from "./stream-check.js";

/** What forks and their sources ask of a stream: as it is when the journal has been applied. */
export interface StreamFacts {
  readonly id: string;
  readonly name: string;
  readonly forkedFrom: ForkOrigin | null;
  readonly earliest: Position;
  readonly tail: Position;
  /** Where the bytes end that each of its forks needs, by id. */
  readonly forks: ReadonlyMap<string, Position>;
}

/** A stream that others name, or why there are no facts about it. */
export type FoundStream = StreamFacts | "missing" | "damaged";

const NO_FORKS: ReadonlyMap<string, Position> = new Map();

/** Tells of streams what their sidecars and the journal say together. */
export class StreamFactFinder {
  readonly #files: Files;
  readonly #layout: Layout;
  /** Where those were whose deletion it holds. */
  readonly #vacated: ReadonlySet<string>;
  /** The streams that the journal speaks of and that exist in the end, by where they are. */
  readonly present: ReadonlyMap<string, JournaledStream>;
  /** The ids of those whose deletion it holds. */
  readonly deleted: ReadonlySet<string>;

  constructor({ files, layout }: Pick<DataDirectory, "files" | "layout">, { streams }: Survey) {
    this.#files = files;
    this.#layout = layout;
    const all = [...streams.values()];
    this.present = new Map(all.filter(({ deleted }) => !deleted).map((stream) => [stream.directory, stream]));
    this.#vacated = new Set(all.filter(({ deleted }) => deleted).map(({ directory }) => directory));
    this.deleted = new Set(all.filter(({ deleted }) => deleted).map(({ identity }) => identity.id));
  }

  /** Whether the journal deletes the stream in a directory and has none after it: what is there is nobody's. */
  isVacated(directory: string): boolean {
    return this.#vacated.has(directory) && !this.present.has(directory);
  }

  /** The facts of the stream in a directory with this sidecar; `null` where no stream is, or it is not sound. */
  factsIn(directory: string, sidecar: Sidecar | null): StreamFacts | null {
    const journaled = this.present.get(directory);
    const isOwn =
      sidecar !== null &&
      !sidecar.claimed &&
      !this.deleted.has(sidecar.id) &&
      this.#layout.streamDirectory(sidecar.name) === directory;
    if (isOwn && (journaled === undefined || journaled.identity.id === sidecar.id)) return merged(sidecar, journaled);
    return journaled?.createdHere === true ? journaledFacts(journaled) : null;
  }

  /** The facts about those streams that have no files yet. */
  *unwritten(): Generator<StreamFacts> {
    for (const stream of this.present.values())
      if (stream.createdHere && stream.sidecar === null) yield journaledFacts(stream);
  }

  /** Looks for the stream of this name. */
  async find(name: string): Promise<FoundStream> {
    const directory = this.#layout.streamDirectory(name);
    const read = await attempt(() => readSidecarIn(this.#files, directory));
    if (typeof read === "string") return "damaged";
    const facts = this.factsIn(directory, read?.kind === "sound" ? read.sidecar : null);
    if (facts !== null) return facts;
    if (read !== null) return read.kind === "sound" ? "missing" : "damaged";
    const listed = await attempt(() => this.#files.list(directory));
    return typeof listed === "string" || listed.some((file) => segmentStartOf(file) !== null) ? "damaged" : "missing";
  }
}

function merged(
  { id, name, config, state, earliest, forks }: Sidecar,
  journaled: JournaledStream | undefined,
): StreamFacts {
  return {
    id,
    name,
    forkedFrom: config.forkedFrom,
    earliest: Math.max(earliest.position, journaled?.trimmedTo ?? 0),
    tail: journaled?.tail ?? state.tail,
    forks: changed(forks ?? NO_FORKS, journaled?.forkChanges),
  };
}

function journaledFacts({ identity, trimmedTo, tail, forkChanges }: JournaledStream): StreamFacts {
  const { forkedFrom } = identity.config;
  const earliest = Math.max(trimmedTo, forkedFrom?.earliest.position ?? 0);
  return { id: identity.id, name: identity.name, forkedFrom, earliest, tail, forks: changed(NO_FORKS, forkChanges) };
}

function changed(
  forks: ReadonlyMap<string, Position>,
  changes: JournaledStream["forkChanges"] | undefined,
): ReadonlyMap<string, Position> {
  if (changes === undefined || changes.size === 0) return forks;
  const result = new Map(forks);
  for (const [id, neededBefore] of changes) {
    if (neededBefore === null) result.delete(id);
    else result.set(id, neededBefore);
  }
  return result;
}

/**
 * The ids that a stream without a sound sidecar may have: what the journal, the damaged sidecar and the one that a
 * repair kept give for it. None when nobody knows.
 */
export async function idsOf(
  directory: Pick<DataDirectory, "files" | "layout">,
  checked: CheckedStream,
  journaled: JournaledStream | undefined,
): Promise<string[]> {
  const ids = [journaled?.identity.id, writtenId(checked.sidecarBytes)];
  const copies = new Quarantine(directory).copiesOf(sidecarPath(checked.directory));
  for await (const copy of copies) ids.push(writtenId(copy));
  return ids.filter((id) => id !== undefined);
}

/** The id that a sidecar gives, also a damaged one. */
export function writtenId(sidecar: Buffer | null): string | undefined {
  return /^"id": "([0-9a-f]{24})",$/m.exec(sidecar?.toString("utf8") ?? "")?.[1];
}
