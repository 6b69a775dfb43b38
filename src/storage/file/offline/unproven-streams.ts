import { mayHaveLost } from "../survey/damaged-place.js";
import { isApplicable, shortStreams, type ShortStream } from "./journal-replay.js";
import type { Survey } from "../survey/journal-survey.js";
import { ownSidecar } from "../survey/journaled-stream.js";
import type { StreamIdentity } from "../format/record.js";
import type { Position } from "../../storage.js";
import type { CheckedStream } from "../survey/stream-check.js";
import type { StreamFactFinder } from "../survey/stream-facts.js";

/**
 * Open streams of which nothing shows that they have not lost their end, where it is not known whose records were
 * damaged; those that have lost some for certain are not among them. `streams` are all that have a directory.
 */
export async function unprovenStreams(
  survey: Survey,
  facts: StreamFactFinder,
  streams: AsyncIterable<CheckedStream>,
): Promise<ShortStream[]> {
  const { damages } = survey;
  const found: ShortStream[] = [];
  if (damages.every(({ others }) => others === "nobody")) return found;
  const short = new Set(shortStreams(survey).map(({ directory }) => directory));
  const note = ({ id, name, config }: StreamIdentity, directory: string, tail: Position): void => {
    if (!short.has(directory))
      found.push({ id, name, config, directory, reason: reasonAt(tail), isLostWithAll: false });
  };
  for (const stream of facts.present.values()) {
    const { identity, directory, ended, tail } = stream;
    const own = ownSidecar(stream);
    // Of one that its directory tells of, the sidecar is not in its place.
    const isOnlyHere = own === null ? isApplicable(stream, survey) : own.claimed || stream.isTold;
    const batch = own === null || own.claimed ? 0 : own.batch;
    if (isOnlyHere && !ended && mayHaveLost(damages, { id: identity.id, batch }, stream))
      note(identity, directory, tail);
  }
  for await (const { directory, sidecar } of streams) {
    if (sidecar === null || sidecar.claimed || facts.deleted.has(sidecar.id)) continue;
    if (sidecar.softDeleted || sidecar.state.closed) continue;
    const present = facts.present.get(directory);
    const journaled = present?.identity.id === sidecar.id ? present : undefined;
    if (journaled?.ended !== true && mayHaveLost(damages, sidecar, journaled))
      note(sidecar, directory, journaled?.tail ?? sidecar.state.tail);
  }
  return found;
}

function reasonAt(tail: Position): string {
  const lost = `records of it from position ${tail} on may be lost, and its readers may have seen them`;
  return `${lost}: nobody can tell whose records a damaged part of the journal had`;
}
