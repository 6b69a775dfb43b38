import {
  StorageBusyError,
  TrimmedStreamError,
  type MaybePromise,
  type Position,
  type StoredStream,
} from "../../storage/storage.js";

/** A stream whose beginning retention may drop while it is read. */
export interface TrimmedAtTimes {
  readonly stored: Pick<StoredStream, "name" | "earliest">;
  retain(): void;
  release(): void;
}

/** Each try fails because the beginning was dropped meanwhile: retention is faster than the disk. */
const MAX_TRIES = 100;

/**
 * Calls `work` with the position where a stream begins. When retention drops that position before the work is done,
 * `work` is called again with the new one: a reader of the beginning never fails because it is gone. The stream stays
 * in memory meanwhile. `work` throws TrimmedStreamError where its position is gone; after too many of these this throws
 * StorageBusyError.
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
