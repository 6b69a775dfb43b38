import { MANIFEST } from "./packaged-files.js";

/** The version of this package, as its package.json has it; `unknown` in a bundle of another program. */
export function packageVersion(): string {
  const version = MANIFEST?.version;
  return typeof version === "string" ? version : "unknown";
}
