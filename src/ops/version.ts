import { createRequire } from "node:module";

/** The version of this package, as its package.json has it; `unknown` in a bundle that was made without one. */
export function packageVersion(): string {
  const load = createRequire(import.meta.url);
  try {
    const { version } = load("../../package.json") as { version: string }; // npm publishes none without a version
    return version;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return "unknown";
    throw error;
  }
}
