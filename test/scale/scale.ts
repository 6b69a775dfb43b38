import { rmSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureCheckpoint } from "./checkpoint.js";
import { measureExpiry } from "./expiry.js";
import { measureKeptReads } from "./kept-reads.js";
import { measureList } from "./list.js";
import { measureMemory } from "./memory.js";
import { measureOverload } from "./overload.js";
import type { Figure, Setting } from "./figure.js";

/*
 * Measures the built server with many streams: `npm run scale -- --streams 100000 --only memory,expiry`. Prints what was
 * measured beside its goal, and ends with status 1 when a goal was missed. It needs the machine for itself.
 */

const PARTS: Readonly<Record<string, (setting: Setting) => Promise<Figure[]>>> = {
  memory: measureMemory,
  list: measureList,
  checkpoint: measureCheckpoint,
  expiry: measureExpiry,
  overload: measureOverload,
  "kept-reads": measureKeptReads,
};

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "100000" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: Object.keys(PARTS).join(",") },
  },
});

// The pauses of the measurement do not keep the process alive by themselves.
const alive = setInterval(() => undefined, 1000);
const cleanups: (() => Promise<void>)[] = [];
const root = mkdtempSync(join(tmpdir(), "streamdir-scale-"));
let missed = 0;
try {
  for (const name of values.only.split(",")) {
    const measure = PARTS[name];
    if (measure === undefined) throw new Error(`there is no part ${name}; there are ${Object.keys(PARTS).join(", ")}`);
    const scope = { after: (run: () => Promise<void>) => void cleanups.push(run) };
    for (const figure of await measure({ scope, root, streams: Number(values.streams), rounds: Number(values.rounds) }))
      missed += show(figure);
    for (const entry of readdirSync(root)) rmSync(join(root, entry), { recursive: true, force: true });
  }
} finally {
  clearInterval(alive);
  for (const run of cleanups) await run();
  rmSync(root, { recursive: true, force: true });
}
process.exitCode = missed === 0 ? 0 : 1;

/** Prints one line of the table; returns 1 when the goal was missed. */
function show({ what, measured, unit, goal }: Figure): number {
  const isMissed = goal !== null && measured > goal;
  const value = `${measured < 10 ? measured.toFixed(2) : measured.toFixed(0)} ${unit}`;
  console.log(`${what.padEnd(64)} ${value.padStart(12)} ${goal === null ? "" : `goal <= ${goal} ${unit}`}${isMissed ? "  MISSED" : ""}`);
  return isMissed ? 1 : 0;
}
