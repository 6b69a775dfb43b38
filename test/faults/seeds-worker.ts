import { playClusterHistory } from "../helpers/cluster-history.js";
import { runHistory } from "./histories.js";
import { runDamage } from "./random-damage.js";
import type { FailedSeed, WorkerReport } from "./seeds.js";

// The seeds from `first` on, before `end`, each `step` after the one before; `burst` is how many runs lie between two reports.
const [what, ...numbers] = process.argv.slice(2);
const [first = 0, end = 0, step = 1, burst = 20] = numbers.map(Number);
let failed: FailedSeed[] = [];
let done = 0;

for (let seed = first; seed < end; seed += step) {
  try {
    if (what === "cluster") await playClusterHistory(seed);
    else await (what === "damage" ? runDamage(seed) : runHistory(seed));
  } catch (error) {
    failed.push({ seed, says: `seed ${seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` });
  }
  done += 1;
  if (done === burst) report();
}
report();
process.disconnect?.();

function report(): void {
  const sent: WorkerReport = { done, failed };
  process.send?.(sent);
  failed = [];
  done = 0;
}
