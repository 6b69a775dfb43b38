import type { ForkOrigin, Position } from "../../storage.js";
import { neededBy, type ForkRelations, type Reference } from "../survey/fork-relations.js";
import type { JournaledStream } from "../survey/journaled-stream.js";
import type { CheckedStream } from "../survey/stream-check.js";
import { writtenId } from "../survey/stream-facts.js";

/** What forks, a source and the journal know of a stream whose sidecar is lost. */
export interface Relatives {
  /** `null` when nobody names it. */
  readonly id: string | null;
  readonly forkedFrom: ForkOrigin | null;
  /** Whether it still has bytes of its source. */
  readonly keepsInherited: boolean;
  /** Where the bytes end that each of its forks needs, by id; `null` without forks. */
  readonly forks: Map<string, Position> | null;
  /** Where the last of them begins: there was something of this stream up to there. */
  readonly lastPoint: Position;
}

/** Finds the relatives of a stream whose sidecar is lost, or says why nobody can tell whose they are. */
export function relativesOf(
  relations: ForkRelations,
  isOnlyLost: boolean,
  checked: CheckedStream,
  journaled: JournaledStream | undefined,
): Relatives | string {
  const id = journaled?.identity.id ?? ownIdOf(relations, checked);
  if (typeof id === "object") return id.unknown;
  const reference = id === undefined ? referenceByPlace(relations, isOnlyLost, checked) : relations.referenceTo(id);
  if (typeof reference === "string") return reference;
  const forkedFrom = journaled === undefined ? originOf(reference) : journaled.identity.config.forkedFrom;
  const [start] = checked.starts;
  const keepsInherited =
    forkedFrom !== null &&
    (reference === null ? start === undefined || start === forkedFrom.point : reference.neededBefore > 0);
  const known = id ?? reference?.id ?? null;
  return { id: known, forkedFrom, keepsInherited, ...forksOf(relations, known) };
}

/** The id that its forks give it. Of another stream that had the name they must not get the bytes. */
function ownIdOf(
  relations: ForkRelations,
  { name, sidecarBytes }: CheckedStream,
): string | undefined | { readonly unknown: string } {
  const ids = name === null ? [] : relations.idsOf(name);
  const written = writtenId(sidecarBytes);
  if (written !== undefined && (ids.length === 0 || ids.includes(written)))
    return ids.length > 0 || relations.referenceTo(written) !== null ? written : undefined;
  if (ids.length === 0) return undefined;
  if (ids.length === 1 && written === undefined) return ids[0];
  const forked = `streams were forked from ${ids.join(" and ")} of this name`;
  return { unknown: `${forked}, and nobody can tell whether this is it: put it back from a copy` };
}

/** A fork's own bytes begin where those end that it needs of its source. */
function referenceByPlace(
  relations: ForkRelations,
  isOnlyLost: boolean,
  { starts }: CheckedStream,
): Reference | string | null {
  const [start] = starts;
  const candidates = [...relations.unmatched()].filter(
    ({ neededBefore }) => neededBefore > 0 && (start === undefined || neededBefore === start),
  );
  const [only] = candidates;
  if (only === undefined) return null;
  if (candidates.length === 1 && isOnlyLost && start !== undefined) return only;
  return `it may be a fork of ${JSON.stringify(only.source.name)}, and nobody can tell: put it back from a copy`;
}

/** How the point was asked for is not known, nor what the fork has dropped of what it shares. */
function originOf(reference: Reference | null): ForkOrigin | null {
  if (reference === null || reference.neededBefore === 0) return null;
  const { source, neededBefore } = reference;
  const earliest = { position: source.earliest, segmentStart: source.earliest };
  return { name: source.name, id: source.id, point: neededBefore, earliest, offset: null, subOffset: 0 };
}

function forksOf(relations: ForkRelations, id: string | null): Pick<Relatives, "forks" | "lastPoint"> {
  const forks = id === null ? [] : relations.forksOf(id);
  const lastPoint = forks.reduce((last, { point }) => Math.max(last, point), 0);
  return { forks: forks.length === 0 ? null : new Map(forks.map((fork) => [fork.id, neededBy(fork)])), lastPoint };
}
