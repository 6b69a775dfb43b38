import { setFlagsFromString } from "node:v8";

const FLAG = "--heap-growing-percent";
/** By how much of what is in use the heap may grow before garbage is collected. */
const GROWTH_PERCENT = 30;

/**
 * Has V8 collect garbage before the heap is several times what is in use, as it may be otherwise: with many streams,
 * hundreds of MiB. A flag of the same name among Node's own, `execArgv`, stays as it is. To be called once all is
 * loaded: with other flags than it was built with, Node compiles its own modules anew.
 */
export function boundHeapGrowth(execArgv: readonly string[], setFlag = setFlagsFromString): void {
  if (!execArgv.some((argument) => argument.replaceAll("_", "-").startsWith(FLAG))) setFlag(`${FLAG}=${GROWTH_PERCENT}`);
}
