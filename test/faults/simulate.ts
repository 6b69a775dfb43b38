import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { runHistory } from "./histories.js";
import { MUTANTS } from "./mutants/all.js";
import { MutatedTree } from "./mutated-tree.js";
import { runDamage } from "./random-damage.js";
import { playClusterHistory } from "../helpers/cluster-history.js";
import { runSeeds, type SeededRun } from "./seeds.js";

// `npm run simulate -- --seeds 100000` runs as many histories on new seeds; `--seed N` runs one again and tells all of
// it. With `--cluster` a seed is a history of several servers on one log. With `--damage` a seed is a directory that
// comes to harm and is repaired. `--mutants` looks, for each copy of the server with a wrong line, for the first of
// `--seeds` histories that finds it.
const { values } = parseArgs({
  options: {
    cluster: { type: "boolean", default: false },
    damage: { type: "boolean", default: false },
    seed: { type: "string" },
    seeds: { type: "string", default: "1000" },
    from: { type: "string" },
    mutants: { type: "boolean", default: false },
  },
});
const run: SeededRun = values.cluster ? "cluster" : values.damage ? "damage" : "history";
if (values.mutants) await findMutants(Number(values.seeds), Number(values.from ?? 1));
else if (values.seed !== undefined) await replay(Number(values.seed));
else await runMany(Number(values.seeds), values.from === undefined ? Date.now() : Number(values.from));

async function replay(seed: number): Promise<void> {
  const trace = (line: string): void => console.log(line);
  try {
    console.log(`seed ${seed} holds${await replayed(seed, trace)}`);
  } catch (error) {
    console.log(error instanceof Error ? error.stack : String(error));
    process.exitCode = 1;
  }
}

/** Runs one seed; what it came to. */
async function replayed(seed: number, trace: (line: string) => void): Promise<string> {
  if (run === "damage") {
    await runDamage(seed, trace);
    return "";
  }
  if (run === "cluster") {
    const { acknowledged, conflicts } = await playClusterHistory(seed);
    return `: ${acknowledged} appends acknowledged, ${conflicts} conflicts`;
  }
  const { acknowledged, crashes } = await runHistory(seed, { trace });
  return `: ${acknowledged} appends acknowledged, ${crashes} crashes`;
}

async function runMany(count: number, from: number): Promise<void> {
  const startedMs = performance.now();
  const isTerminal = process.stderr.isTTY;
  const failures = await runSeeds({
    run,
    from,
    count,
    workers: availableParallelism(),
    progress: (done, failed) => {
      if (isTerminal) process.stderr.write(`\r${bar(done / count)} ${done}/${count}, ${failed} failed`);
    },
    // At once: whoever runs a million need not wait for the last.
    failure: ({ seed, says }) =>
      console.log(`${isTerminal ? "\n" : ""}${says}\n  npm run simulate -- ${run === "history" ? "" : `--${run} `}--seed ${seed}`),
  });
  if (isTerminal) process.stderr.write("\n");
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(
    `${count} ${run === "damage" ? "repairs" : "histories"} from seed ${from}, ${failures.length} failed, ${(count / seconds).toFixed(0)} a second`,
  );
  if (failures.length > 0) process.exitCode = 1;
}

async function findMutants(count: number, from: number): Promise<void> {
  const rest = MUTANTS.values();
  const worker = async (): Promise<void> => {
    for (const mutant of rest) {
      const tree = new MutatedTree(mutant);
      const found = await tree.findingSeed(from, count);
      tree.remove();
      if (found === null) process.exitCode = 1;
      const histories =
        found === null
          ? `not found by ${count} histories`
          : `found by history ${found.seed - from + 1}: ${found.says.split("\n", 1).join()}`;
      console.log(`${mutant.fault}: ${histories}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

function bar(part: number): string {
  const WIDTH = 40;
  const filled = Math.round(part * WIDTH);
  return `[${"#".repeat(filled)}${" ".repeat(WIDTH - filled)}]`;
}
