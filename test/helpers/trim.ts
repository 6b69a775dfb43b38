import type { Position, Storage, StoredStream } from "../../src/storage/storage.js";

/** Drops whole parts of a stream that end at or before `before`. */
export function trimBefore(storage: Storage, stream: StoredStream, before: Position): void {
  storage.trim(stream, { maxBytes: Math.max(0, stream.state.tail - before), maxAgeMs: Infinity }, 0);
}
