import { JOURNAL_MUTANTS } from "./journal.js";
import type { Mutant } from "./mutant.js";
import { RECOVERY_MUTANTS } from "./recovery.js";
import { STREAM_MUTANTS } from "./stream.js";
import { WRITER_MUTANTS } from "./writer.js";

/** Every wrong line that the histories are known to find. */
export const MUTANTS: readonly Mutant[] = [...JOURNAL_MUTANTS, ...RECOVERY_MUTANTS, ...WRITER_MUTANTS, ...STREAM_MUTANTS];
