import type { Sidecar } from "../format/sidecar.js";
import type { JournaledStream } from "./journaled-stream.js";
import { nameList } from "./name-list.js";

/** A damaged place in the journal. */
export interface DamagedPlace {
  readonly file: string;
  readonly offset: number;
  readonly problem: string;
  /** The batch of the first sound frame behind it, `Infinity` where there is none. */
  readonly after: number;
  /** Streams with sound records behind it, by id; what is between may be records of any stream. */
  readonly behind: Set<string>;
  /** Streams that the damaged records themselves seem to be for, by id. */
  readonly suspects: Set<string>;
  /**
   * Streams besides those that may have had records in it: nobody's, where all that it held is known; by id those that
   * the file had bound before, where it is known that it bound no others.
   */
  readonly others: "nobody" | "anybody" | ReadonlySet<string>;
  /** Sound records behind it of streams that only a record in it named, and the batch of the last of them. */
  strayRecords: number;
  strayBatch: number;
}

/**
 * Whether a stream may have lost its end in a damaged place although nothing says so: it is not known whose records
 * were there, and neither its own files nor later records show that it is whole.
 */
export function mayHaveLost(
  places: readonly DamagedPlace[],
  { id, batch }: Pick<Sidecar, "id" | "batch">,
  journaled: JournaledStream | undefined,
): boolean {
  return places.some(({ others, after, strayBatch }) => {
    if (others === "nobody" || (others !== "anybody" && !others.has(id))) return false;
    return batch < Math.max(after - 1, strayBatch) && (journaled?.provenBatch ?? 0) < after;
  });
}

/** The damage in words, with the streams whose records it may hold. */
export function describeDamage(
  { problem, behind, suspects, others, strayRecords }: DamagedPlace,
  streams: ReadonlyMap<string, JournaledStream>,
): string {
  const namesOf = (ids: ReadonlySet<string>): string =>
    nameList([...ids].map((id) => streams.get(id)?.identity.name ?? id));
  const held =
    suspects.size > 0
      ? `it seems to hold records of ${namesOf(suspects)}`
      : others === "nobody"
        ? "nothing can have been lost in it"
        : "";
  const more =
    others === "anybody"
      ? "it may hold records of any stream"
      : others !== "nobody" && others.size > 0
        ? `it may hold records of ${namesOf(others)}`
        : "";
  const later = behind.size > 0 ? `records behind it are of ${namesOf(behind)}` : "";
  const stray = strayRecords > 0 ? `${strayRecords} sound records behind it can't be given to a stream` : "";
  return [problem, held, more, later, stray].filter((part) => part !== "").join("; ");
}
