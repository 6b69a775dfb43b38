import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";

/** Whether V8 has one and the same hidden class for both: code that was compiled for one then takes the other as it is. */
export function haveSameClass(one: object, other: object): boolean {
  setFlagsFromString("--allow-natives-syntax");
  const compare = runInThisContext("(one, other) => %HaveSameMap(one, other)") as (one: object, other: object) => boolean; // as written
  return compare(one, other);
}
