// How V8 keeps the heap.

import { setFlagsFromString } from "node:v8";

/** What fills most of the heap. */
export type HeapUse = "directory" | "cluster";

/*
 * With a directory: V8 collects before the heap is several times what is in use; with many streams that saves hundreds
 * of MiB. With a cluster an append makes more garbage, and the processors may be shared with NATS servers: fewer full
 * collections, and small ones without threads that wait for each other, make a front end a quarter cheaper.
 */
const FLAGS: Readonly<Record<HeapUse, readonly string[]>> = {
  directory: ["--heap-growing-percent=30"],
  cluster: ["--heap-growing-percent=100", "--no-parallel-scavenge"],
};

/**
 * Tells V8 how to keep the heap. What is among Node's own flags, `execArgv`, takes precedence. Call it once all modules
 * are loaded: with flags other than its build's, Node recompiles its own modules.
 */
export function tuneHeap(execArgv: readonly string[], use: HeapUse, setFlag = setFlagsFromString): void {
  const given = new Set(execArgv.map(nameOf));
  for (const flag of FLAGS[use]) if (!given.has(nameOf(flag))) setFlag(flag);
}

function nameOf(flag: string): string {
  const [name = ""] = flag.replaceAll("_", "-").split("=", 1);
  return name.replace(/^--no-/, "--");
}
