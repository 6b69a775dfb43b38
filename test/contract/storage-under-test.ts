import type { TestContext } from "node:test";
import type { Storage, StreamObserver } from "../../src/storage/storage.js";

/** An engine under test. */
export interface StorageUnderTest {
  readonly storage: Storage;
  /** Whether other servers write the same streams: then it can't know what is not there, and has nothing to write behind. */
  readonly isShared?: true;
  /** Ends the engine in good order and gives one that has what it had. */
  restart(): Promise<Storage>;
}

/** Opens an engine with nothing in it; what it needs to give back at the end it hooks to `t`. */
export type StorageFactory = (t: TestContext) => Promise<StorageUnderTest>;

/** An observer that notes in `told` what it is told. */
export function observing(told: string[]): StreamObserver {
  return {
    advanced: (from, to, closed) => told.push(`${from}..${to} ${closed ? "closed" : "open"}`),
    settled: () => told.push("settled"),
    deleted: () => told.push("deleted"),
  };
}
