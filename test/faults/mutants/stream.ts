import type { Mutant } from "./mutant.js";

/** Faults of forks, retention, producers, lifetimes and closure. */
export const STREAM_MUTANTS: readonly Mutant[] = [
];
