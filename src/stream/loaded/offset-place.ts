// Finds where a read begins.

import type { ReadStart, TokenPlace } from "../../protocol/offset.js";
import {
  DamagedStreamError,
  TrimmedStreamError,
  type MaybePromise,
  type Position,
  type Storage,
  type StoredStream,
} from "../../storage/storage.js";
import { earliestAnew } from "../rules/offset-tokens.js";
import { refuse, type Refused } from "../rules/outcome.js";
import type { ReadClient } from "../rules/scan-turns.js";
import { placeOfLast, placeSince } from "./sought-place.js";

/** Where a read begins: at a position, or at the start of the stream, wherever that is when it is read. */
export type ReadFrom = Position | "start";

/** A stream that is read by offset tokens. */
export interface TokenedStream {
  readonly stored: StoredStream;
  readonly isJson: boolean;
  /** End of the durable bytes. */
  readonly tail: Position;
  /** The offset token of the earliest retained byte. */
  readonly earliestOffset: string;
  isOwnToken(place: TokenPlace): boolean;
  retain(): void;
  release(): void;
}

const NEWLINE = 0x0a;

const OTHERS = "of another server, of a stream that had this name before";
const SOURCES = "of this fork's source";
const LOST = "of what the stream has lost: an earlier state of the server was restored.";

/** Where reading begins that a `client` asks for, or why it can't (docs/api.md, Read). */
export function placeOf(
  storage: Storage,
  stream: TokenedStream,
  offset: ReadStart,
  client?: ReadClient,
): MaybePromise<ReadFrom | Refused> {
  switch (offset.kind) {
    case "start":
      return "start";
    case "now":
      return stream.tail;
    case "at":
      return positionOf(storage, stream, offset);
    case "last":
      return placeOfLast(storage, stream, offset.count, client);
    case "since":
      return placeSince(storage, stream, offset.atMs);
  }
}

function positionOf(storage: Storage, stream: TokenedStream, place: TokenPlace): MaybePromise<Position | Refused> {
  const { partStart, byteInPart } = place;
  const { stored } = stream;
  const position = partStart + byteInPart;
  if (!stream.isOwnToken(place)) {
    const rest = storage.isRestored ? `${SOURCES}, or ${LOST}` : `or ${SOURCES}.`;
    return refuse("offset-gone", { earliestOffset: earliestAnew(stored), detail: `The offset is ${OTHERS}, ${rest}` });
  }
  if (position < stored.earliest) return refuse("offset-gone", { earliestOffset: stream.earliestOffset });
  if (!stored.hasPart(partStart, byteInPart)) {
    if (!storage.isRestored)
      return refuse("invalid-offset", { detail: "The offset was not given out by this stream." });
    return refuse("offset-gone", { earliestOffset: earliestAnew(stored), detail: `The offset is ${LOST}` });
  }
  const isBoundary = byteInPart === 0 || position === stream.tail || position === stored.earliest;
  if (!stream.isJson || isBoundary) return position;
  const before = storage.read(stored, position - 1, 1);
  if (Buffer.isBuffer(before)) return atMessageBoundary(before, position);
  return before.then(
    (byte) => atMessageBoundary(byte, position),
    (error: unknown) => {
      // Retention has dropped the beginning of the stream, which may now begin at this very position.
      if (error instanceof TrimmedStreamError && position <= stored.earliest) return positionOf(storage, stream, place);
      // The message before is damaged, and ends here.
      if (error instanceof DamagedStreamError && error.readable?.position === position) return position;
      throw error;
    },
  );
}

function atMessageBoundary(byteBefore: Buffer, position: Position): Position | Refused {
  return byteBefore[0] === NEWLINE ? position : refuse("invalid-offset", { detail: "The offset is inside a message." });
}
