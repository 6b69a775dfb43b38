// Cuts what a server answered with into the pieces of an archive. Each becomes one append of the import.

/** The most bytes of a piece, but for a longer message: a request that any server takes, and a message of NATS. */
export const PIECE_BYTES = 512 * 1024;

const LINE_FEED = 0x0a;
/** The most bytes behind the first one of a character in UTF-8. */
const MAX_CONTINUATION_BYTES = 3;

/**
 * The pieces of `bytes`, in order. A piece ends at the end of a line where it can: of JSON always, as a line is a
 * message. Of other streams a longer line is cut between two characters.
 */
export function* cutIntoPieces(bytes: Buffer, isJson: boolean): Generator<Buffer, void, void> {
  let from = 0;
  while (bytes.length - from > PIECE_BYTES) {
    const end = pieceEnd(bytes, from, isJson);
    yield bytes.subarray(from, end);
    from = end;
  }
  if (from < bytes.length) yield bytes.subarray(from);
}

function pieceEnd(bytes: Buffer, from: number, isJson: boolean): number {
  const limit = from + PIECE_BYTES;
  const lineEnd = bytes.lastIndexOf(LINE_FEED, limit - 1) + 1;
  if (lineEnd > from) return lineEnd;
  if (isJson) return bytes.indexOf(LINE_FEED, limit) + 1 || bytes.length;
  let end = limit;
  while (limit - end < MAX_CONTINUATION_BYTES && isContinuation(bytes[end])) end -= 1;
  return isContinuation(bytes[end]) ? limit : end;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
