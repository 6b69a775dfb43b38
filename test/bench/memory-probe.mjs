import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/*
 * Goes into the measured server with --import: on SIGUSR2 it says how many bytes are in use once all is collected that
 * nothing holds any more.
 */

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

process.on("SIGUSR2", () => {
  // What one collection sets free may free something else in the next.
  for (let round = 0; round < 3; round += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  process.stderr.write(`bytes in use ${heapUsed + external}\n`);
});
