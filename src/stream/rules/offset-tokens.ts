import { checkOf, formatOffset, isCheckOf, isStart, type TokenPlace } from "../../protocol/offset.js";
import type { Position, StoredStream } from "../../storage/storage.js";

/**
 * The token of a position of a stream: it names the part of the byte before it, so that a position has one token for
 * ever, and the incarnation that wrote that byte. `ownCheck` is that of the stream itself, for who has it at hand.
 */
export function offsetIn(stored: StoredStream, position: Position, ownCheck = checkOf(stored.id)): string {
  const segmentStart = stored.segmentStartBefore(position);
  return formatOffset(segmentStart, position - segmentStart, checkBefore(stored, position, ownCheck));
}

/**
 * Whether a place, wherever it is, is named by a token of this incarnation or, before a fork's point, of its source's.
 */
export function isTokenOf(stored: StoredStream, place: TokenPlace, ownCheck = checkOf(stored.id)): boolean {
  return isStart(place) || isCheckOf(place.check, checkBefore(stored, place.partStart + place.byteInPart, ownCheck));
}

function checkBefore(stored: StoredStream, position: Position, ownCheck: number): number {
  const writer = stored.writerBefore(position);
  return writer === stored.id ? ownCheck : checkOf(writer);
}
