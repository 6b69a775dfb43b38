import { isApplicable } from "./journal-replay.js";
import type { Survey } from "../survey/journal-survey.js";
import type { JournaledStream } from "../survey/journaled-stream.js";
import type { Sidecar } from "../format/sidecar.js";
import type { CheckedStream } from "../survey/stream-check.js";
import { writtenId } from "../survey/stream-facts.js";
import { problemWithOwner } from "./verify.js";

/** What the journal, and what was set aside of it, say of one directory. */
export interface Journals {
  readonly present: JournaledStream | undefined;
  readonly kept: JournaledStream | undefined;
  readonly lastBatch: number;
}

/**
 * What the journal knows of the stream whose sidecar is lost. What was set aside is older and knows more of its
 * beginning, but may be an earlier stream's of the name, whose bytes must never get into this one: `null` where nobody
 * can tell.
 */
export function knownOf(
  { sidecarBytes }: CheckedStream,
  { present, kept }: Journals,
): JournaledStream | null | undefined {
  if (kept === undefined) return present;
  const id = present?.identity.id ?? writtenId(sidecarBytes);
  if (id === undefined) return null;
  return kept.identity.id === id ? kept : present;
}

/** Whether all that is wrong with a stream is a notice of records that its files lack, and can take now. */
export function isToldOnly(journaled: JournaledStream | undefined, survey: Survey): boolean {
  return journaled !== undefined && journaled.isTold && isApplicable(journaled, survey);
}

/** Whether a stream should have a sidecar where there is no sound one. */
export function isMissed(checked: CheckedStream, journaled: JournaledStream | undefined): boolean {
  return checked.sidecarState !== "missing" || problemWithOwner(checked, journaled) !== null;
}

/** Whether a directory is taken for a stream that the journal does not have. */
export function isStale({ claimed, id }: Sidecar, journaled: JournaledStream | undefined): boolean {
  return claimed && journaled?.identity.id !== id;
}

/**
 * In words why the stream with a sound sidecar is not the one that should be there, `null` where it is; one that is
 * deleted may be.
 */
export function problemWithHolder(
  checked: CheckedStream,
  journaled: JournaledStream | undefined,
  { streams }: Survey,
): string | null {
  return streams.get(checked.sidecar?.id ?? "")?.deleted === true ? null : problemWithOwner(checked, journaled);
}
