import { checkOf, formatCheckedOffset, formatOffset, isCheckOf, isStart } from "../../protocol/offset.js";
import type { TokenPlace } from "../../protocol/offset.js";
import type { Position, StoredStream } from "../../storage/storage.js";

/**
 * The offset token of a position. It names the segment of the byte before the position, so that it never changes, and
 * the incarnation that wrote that byte. `ownCheck` is the check of the stream itself, where the caller has it.
 */
export function offsetIn(stored: StoredStream, position: Position, ownCheck = checkOf(stored.id)): string {
  const segmentStart = stored.partStartBefore(position);
  return formatOffset(segmentStart, position - segmentStart, checkBefore(stored, position, ownCheck));
}

/**
 * The offset token of the earliest byte for a reader that has one of another incarnation. It differs from all of
 * theirs: a cache on the way may still have what these began with, under `-1` and the start's usual token.
 */
export function earliestAnew(stored: StoredStream): string {
  const { earliest } = stored;
  const segmentStart = stored.partStartBefore(earliest);
  return formatCheckedOffset(segmentStart, earliest - segmentStart, checkBefore(stored, earliest, checkOf(stored.id)));
}

/** Whether a place is that of a token of this incarnation or, before a fork's point, of its source. */
export function isTokenOf(stored: StoredStream, place: TokenPlace, ownCheck = checkOf(stored.id)): boolean {
  return isStart(place) || isCheckOf(place.check, checkBefore(stored, place.partStart + place.byteInPart, ownCheck));
}

function checkBefore(stored: StoredStream, position: Position, ownCheck: number): number {
  const writer = stored.writerBefore(position);
  return writer === stored.id ? ownCheck : checkOf(writer);
}
