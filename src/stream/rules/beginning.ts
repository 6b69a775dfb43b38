import {
  StorageBusyError,
  TrimmedStreamError,
  type MaybePromise,
  type Position,
  type StoredStream,
} from "../../storage/storage.js";

/** A stream whose beginning may be dropped while somebody reads it. */
export interface TrimmedAtTimes {
  readonly stored: Pick<StoredStream, "name" | "earliest">;
  retain(): void;
  release(): void;
}

/** Each finds that what it was to read is gone: retention is faster than the disk for as long. */
const MAX_TRIES = 100;

/**
 * Does `work` from where a stream begins. When that is dropped before the work is done, the stream begins elsewhere,
 * and the work is done from there: whoever asks for the beginning is never told that it is gone. The stream stays in
 * memory meanwhile. `work` throws TrimmedStreamError where its place is gone; StorageBusyError comes of too many of
 * these.
 */
export function fromBeginning<T>(
  stream: TrimmedAtTimes,
  work: (earliest: Position) => MaybePromise<T>,
): MaybePromise<T> {
  const done = work(stream.stored.earliest);
  return done instanceof Promise ? orFromLater(stream, done, work) : done;
}

async function orFromLater<T>(
  stream: TrimmedAtTimes,
  first: Promise<T>,
  work: (earliest: Position) => MaybePromise<T>,
): Promise<T> {
  stream.retain();
  try {
    let done: MaybePromise<T> = first;
    for (let tries = 1; ; tries += 1) {
      try {
        return await done;
      } catch (error) {
        if (!(error instanceof TrimmedStreamError)) throw error;
      }
      if (tries === MAX_TRIES)
        throw new StorageBusyError(
          `the beginning of the stream ${JSON.stringify(stream.stored.name)} goes faster than it can be read`,
        );
      done = work(stream.stored.earliest);
    }
  } finally {
    stream.release();
  }
}
