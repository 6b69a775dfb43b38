import type { Mutant } from "./mutant.js";

/** Faults of forks, retention, producers, lifetimes and closure. */
export const STREAM_MUTANTS: readonly Mutant[] = [
  {
    fault: "a deleted fork holds its source",
    file: "storage/file/references.ts",
    code: "const unlinking = stream.parent === null ? null",
    becomes: "const unlinking = stream.parent === null || stream !== null ? null",
    seed: 9,
  },
];
