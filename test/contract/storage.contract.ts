import { describe } from "node:test";
import { changesContract } from "./changes.contract.js";
import { memoryContract } from "./memory.contract.js";
import { readsContract } from "./reads.contract.js";
import type { StorageFactory } from "./storage-under-test.js";

/** What any engine does, whatever it keeps its streams in. */
export function storageContract(engine: string, open: StorageFactory): void {
  describe(`${engine} keeps the storage contract`, () => {
    changesContract(open);
    readsContract(open);
    memoryContract(open);
  });
}
